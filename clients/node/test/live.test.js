// What happens when services die, fall silent, refuse, or are others than they were.
'use strict'

const assert = require('node:assert/strict')
const { execFileSync } = require('node:child_process')
const { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } = require('node:fs')
const { createServer } = require('node:net')
const { join } = require('node:path')
const { describe, test } = require('node:test')

const { Feedback, Node, Review, setLogger } = require('@emend/client')
const { certificates } = require('./support/certificates.js')
const { PROGRAM, Pair, directory, eventually } = require('./support/pair.js')

/** Starts a pair that ends with the test. */
async function paired(t, ...further) {
  const pair = await Pair.start(...further)
  t.after(() => pair.stop())
  return pair
}

/** Sets a verb as an operator. */
async function put(pair, phrase, verb, options = {}) {
  const review = new Review(pair.learning, { namespace: 'shop', ...options })
  const key = { kind: 'INVOCATION_PHRASE', key: phrase }
  const { revision } = await review.put(key, { invocationPhrase: { verb } })
  review.close()
  return revision
}

/** A port of this machine where nobody listens. */
async function deadPort() {
  const server = createServer()
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  await new Promise(resolve => server.close(resolve))
  return port
}

describe('live', { concurrency: true }, () => {
  test('a node goes on while the service is killed, and catches up once it is back', async t => {
    const pair = await paired(t)
    const node = new Node(pair.learning, { id: 'search-1' })
    t.after(() => node.close())
    await node.ready()
    await node.waitFor(await put(pair, 'one', 'first'))
    const told = []
    node.on('disconnected', ({ reason }) => told.push(reason))
    await pair.kill()
    await eventually('it notices', () => !node.status().connected)
    assert.equal(node.resolve('shop', 'one').choice, 'first')
    await eventually('it tells why', () => told.length > 0)
    const feedback = new Feedback(pair.feedback, { namespace: 'shop' })
    // Sent while nobody is there; answered once somebody is.
    const waiting = feedback.phrase('later', 'x', { reporter: 'ana', timeout: 30_000 })
    await assert.rejects(feedback.phrase('now', 'x', { timeout: 300 }), { code: 'UNAVAILABLE' })
    await pair.again()
    assert.equal((await waiting).state, 'PENDING')
    feedback.close()
    const revision = await put(pair, 'two', 'second')
    await node.waitFor(revision, { timeout: 40_000 })
    assert.equal(node.status().connected, true)
    assert.deepEqual([node.resolve('shop', 'one').choice, node.resolve('shop', 'two').choice], ['first', 'second'])
  })

  test('a service that falls silent is noticed within 30 s', async t => {
    const pair = await paired(t)
    const node = new Node(pair.learning, { id: 'search-1' })
    t.after(() => node.close())
    await node.ready()
    await eventually('it is connected', () => node.status().connected)
    const since = performance.now()
    pair.stall()
    await eventually('it notices', () => !node.status().connected, 31_000)
    const took = performance.now() - since
    assert.ok(took <= 30_500, `it took ${took} ms`)
    // A call is not left hanging, either.
    const feedback = new Feedback(pair.feedback, { namespace: 'shop', timeout: 1_000 })
    await assert.rejects(feedback.settings(), error => ['DEADLINE_EXCEEDED', 'UNAVAILABLE'].includes(error.code))
    feedback.close()
  })

  test('it starts from the copy on disk of a process that crashed, while no service is there', async t => {
    const pair = await paired(t)
    const cacheDir = directory(t)
    await put(pair, 'kept', 'on_disk')
    const program = `
      const { readdirSync } = require('node:fs')
      const { Node } = require('@emend/client')
      const [address, cacheDir] = process.argv.slice(1)
      const node = new Node(address, { id: 'search-1', cacheDir, cacheInterval: 1 })
      setInterval(() => {
        const isSaved = readdirSync(cacheDir).some(name => name.endsWith('.emend'))
        if (isSaved && node.resolve('shop', 'kept').choice === 'on_disk') process.kill(process.pid, 'SIGKILL')
      }, 20)`
    assert.throws(
      () => execFileSync(process.execPath, ['-e', program, pair.learning, cacheDir], { cwd: __dirname, timeout: 60_000 }),
      { signal: 'SIGKILL' },
    )
    await pair.kill()
    const node = new Node(pair.learning, { id: 'search-1', cacheDir })
    t.after(() => node.close())
    await node.ready()
    const status = node.status()
    assert.deepEqual([status.origin, status.connected], ['DISK_COPY', false])
    assert.ok(status.age > 0)
    await eventually('it tells that nobody answers', () => node.status().lastError !== undefined)
    assert.equal(node.resolve('shop', 'kept').choice, 'on_disk')
  })

  test('a copy on disk that is damaged is left out', async t => {
    const pair = await paired(t)
    const cacheDir = directory(t)
    await put(pair, 'kept', 'on_disk')
    const first = new Node(pair.learning, { id: 'search-1', cacheDir })
    await first.ready()
    await first.close()
    const [file] = readdirSync(cacheDir)
    writeFileSync(join(cacheDir, file), 'damaged')
    const node = new Node(pair.learning, { id: 'search-1', cacheDir })
    t.after(() => node.close())
    await node.ready()
    assert.equal(node.resolve('shop', 'kept').choice, 'on_disk')
  })

  test('TLS with a client certificate; without it, or with another CA, nobody gets in', async t => {
    const files = directory(t)
    const { ca, server, client } = certificates(files)
    const pair = await paired(t, ...server)
    const node = new Node(pair.learning, { id: 'search-1', ...client })
    t.after(() => node.close())
    await node.ready()
    await node.waitFor(await put(pair, 'secret', 'kept', client))
    assert.equal(node.resolve('shop', 'secret').choice, 'kept')

    const without = new Feedback(pair.feedback, { namespace: 'shop', ca: ca, timeout: 2_000 })
    t.after(() => without.close())
    // The service closes the connection, with or without a word that arrives in time; of several attempts the last may be the one
    // that the time limit ends.
    const given = ['CANCELLED', 'UNAVAILABLE', 'UNKNOWN', 'DEADLINE_EXCEEDED']
    await assert.rejects(without.settings(), error => given.includes(error.code))

    const other = certificates(directory(t))
    const distrusting = new Feedback(pair.feedback, { namespace: 'shop', ...client, ca: other.ca, timeout: 2_000 })
    t.after(() => distrusting.close())
    await assert.rejects(distrusting.settings(), error => {
      return ['UNAVAILABLE', 'DEADLINE_EXCEEDED'].includes(error.code) && /CA/.test(error.message)
    })

    const lost = new Node(pair.learning, { id: 'search-2', ...client, ca: other.ca })
    t.after(() => lost.close())
    const why = await new Promise(resolve => lost.once('disconnected', ({ reason }) => resolve(reason)))
    assert.match(why, /CA/)
    assert.deepEqual([lost.status().connected, lost.status().origin], [false, 'NOTHING'])
    assert.throws(() => new Feedback(pair.feedback, { certificate: client.certificate }), /key/)
  })

  test('a token is exchanged while it runs, and a wrong one is refused', async t => {
    const files = directory(t)
    const made = name => {
      const told = execFileSync(PROGRAM, ['admin', 'token'], { encoding: 'utf8' })
      const [, hash] = /"([0-9a-f]{64})"/.exec(told)
      const [token] = told.split(/\s+/).filter(word => /^[A-Za-z0-9_-]{40,}$/.test(word) && !/^[0-9a-f]{64}$/.test(word))
      return { name, token, hash }
    }
    const [relay, old, next] = ['relay', 'old', 'next'].map(made)
    const rights = `roles = ["reporter", "reviewer", "operator", "subscriber"], namespaces = "*"`
    const allow = (...hashes) =>
      writeFileSync(
        join(files, 'auth.toml'),
        `[[principals]]\nname = "relay"\ntoken_sha256 = ["${relay.hash}"]\ngrants = [{ roles = ["ingester"], namespaces = "*" }]\n\n` +
          `[[principals]]\nname = "backend"\ntoken_sha256 = ${JSON.stringify(hashes)}\ngrants = [{ ${rights} }]\n`,
      )
    allow(old.hash, next.hash)
    writeFileSync(join(files, 'relay.token'), relay.token)
    const tokenFile = join(files, 'token')
    writeFileSync(tokenFile, old.token)
    const secured = ['--auth-config', join(files, 'auth.toml'), '--learning-token-file', join(files, 'relay.token')]
    const pair = await paired(t, ...secured)
    const feedback = new Feedback(pair.feedback, { namespace: 'shop', tokenFile, timeout: 2_000 })
    t.after(() => feedback.close())
    const node = new Node(pair.learning, { id: 'search-1', tokenFile })
    t.after(() => node.close())
    await node.ready()
    assert.equal((await feedback.access()).caller, 'backend')
    writeFileSync(tokenFile, next.token)
    allow(next.hash)
    // The stream that the old token opened ends, and is opened again with the new one.
    await new Promise(resolve => node.once('disconnected', resolve))
    await node.waitFor(await put(pair, 'token', 'exchanged', { tokenFile }), { timeout: 30_000 })
    assert.equal(node.resolve('shop', 'token').choice, 'exchanged')
    assert.equal((await feedback.access()).caller, 'backend')
    writeFileSync(tokenFile, old.token)
    await assert.rejects(feedback.settings(), { code: 'UNAUTHENTICATED' })
    const anonymous = new Feedback(pair.feedback, { namespace: 'shop', timeout: 2_000 })
    t.after(() => anonymous.close())
    await assert.rejects(anonymous.settings(), { code: 'UNAUTHENTICATED' })
  })

  test('of two addresses one may be dead', async t => {
    const pair = await paired(t)
    const dead = `127.0.0.1:${await deadPort()}`
    const node = new Node([dead, pair.learning], { id: 'search-1' })
    t.after(() => node.close())
    await node.ready()
    assert.equal(node.status().connected, true)
    const feedback = new Feedback(`${dead},${pair.feedback}`, { namespace: 'shop' })
    t.after(() => feedback.close())
    assert.equal((await feedback.settings()).namespace, 'shop')
  })

  test('a node keeps what it holds when another installation answers, until it is told to accept it', async t => {
    const [own, other] = [await paired(t), await paired(t)]
    const cacheDir = directory(t)
    await put(own, 'whose', 'own')
    await put(other, 'whose', 'other')
    const before = new Node(own.learning, { id: 'search-1', cacheDir })
    await before.ready()
    await before.close()
    const node = new Node(other.learning, { id: 'search-1', cacheDir })
    t.after(() => node.close())
    const { reason } = await new Promise(resolve => node.once('installationMismatch', resolve))
    const { installation: held, otherInstallation: answering } = node.status()
    assert.ok(reason.includes(held) && reason.includes(answering), reason)
    assert.equal(node.resolve('shop', 'whose').choice, 'own')
    assert.throws(() => node.acceptInstallation('nobody'), { code: 'INVALID_ARGUMENT' })
    node.acceptInstallation(answering)
    await eventually('it accepts it', () => node.resolve('shop', 'whose').choice === 'other', 40_000)
    assert.equal(node.status().otherInstallation, undefined)
  })

  test('prompts are mirrored into files', async t => {
    const pair = await paired(t)
    const files = directory(t)
    rmSync(files, { recursive: true })
    const node = new Node(pair.learning, { id: 'search-1', mirrorPrompts: { directory: files, namespace: 'shop' } })
    t.after(() => node.close())
    const review = new Review(pair.learning, { namespace: 'shop' })
    t.after(() => review.close())
    await review.put({ kind: 'PROMPT', key: 'INTERPRET', qualifier: 'production' }, { prompt: { text: 'Say it.' } })
    const file = join(files, 'INTERPRET.md')
    await eventually('it is written', () => existsSync(file))
    assert.match(readFileSync(file, 'utf8'), /Say it\./)
  })
})

test('a logger is told what happens', async () => {
  const entries = []
  setLogger(entry => entries.push(entry), 'debug')
  const node = new Node(`127.0.0.1:${await deadPort()}`, { id: 'search-1' })
  const entry = await eventually('it is told', () => entries.find(({ level }) => level === 'warn' || level === 'info'))
  assert.match(entry.target, /^emend\./)
  assert.notEqual(entry.message, '')
  await node.close()
  setLogger(undefined)
})
