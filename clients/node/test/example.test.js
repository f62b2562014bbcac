// The programs of the guide run: the first one as it stands, and the search over HTTP with what its users say.
'use strict'

const assert = require('node:assert/strict')
const { execFileSync, spawn } = require('node:child_process')
const { existsSync } = require('node:fs')
const { join } = require('node:path')
const { createInterface } = require('node:readline')
const { test } = require('node:test')

const { Feedback } = require('@emend/client')
const { Pair, directory, eventually } = require('./support/pair.js')

const EXAMPLES = join(__dirname, '../../../examples/node')

const built = existsSync(join(EXAMPLES, 'app.js'))
const unbuilt = !built && 'examples/node is not built'

test('the first program of the guide learns a verb from three people', { skip: unbuilt }, async t => {
  const pair = await Pair.start()
  t.after(() => pair.stop())
  const words = [join(EXAMPLES, 'first.mjs'), pair.feedback, pair.learning]
  const printed = execFileSync(process.execPath, words, { cwd: directory(t), encoding: 'utf8', timeout: 20_000 })
  assert.match(printed, /^undefined \[\] true\n/)
  assert.match(printed, /\ncreate_isda\n/)
  assert.match(printed, /\n3\nUNVERIFIED false\n/)
  assert.match(printed, /\n[0-9a-f-]{36}\n$/)
})

test('the search over HTTP finds what found nothing, once three people said what they mean', { skip: unbuilt }, async t => {
  const pair = await Pair.start()
  t.after(() => pair.stop())
  const app = spawn(process.execPath, [join(EXAMPLES, 'app.js'), pair.feedback, pair.learning], {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => app.kill('SIGKILL'))
  let base
  for await (const line of createInterface({ input: app.stdout })) {
    base = /listening on (\S+)/.exec(line)?.[1]
    if (base) break
  }
  const found = async query => (await fetch(`${base}/search?q=${encodeURIComponent(query)}`)).json()
  const post = async (path, body) => {
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${base}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: answer.status, ...(await answer.json()) }
  }

  const asked = { bounce: 'hand', revive: 'graveyard', 'the face': 'a player' }
  const searched = []
  for (const query of Object.keys(asked)) {
    const { queryId, results } = await found(query)
    assert.deepEqual(results, [], query)
    searched.push(queryId)
  }
  const rated = await post('/rate', { queryId: searched[0], value: -1, reporter: 'ana', reason: 'nothing was found' })
  assert.equal(rated.status, 200)
  const refused = await post('/rate', { queryId: searched[0], value: 7, reporter: 'ana' })
  assert.equal(refused.status, 400)
  assert.equal(refused.violations[0].field, 'value')

  const feedback = new Feedback(pair.feedback, { namespace: 'cards' })
  t.after(() => feedback.close())
  const missed = await eventually('the queries that found nothing are listed', async () => {
    const texts = []
    for await (const { queryText } of feedback.queries({ onlyWithoutHits: true })) texts.push(queryText)
    return texts.length === 3 && texts.sort()
  })
  assert.deepEqual(missed, Object.keys(asked).sort())

  for (const [term, means] of Object.entries(asked)) {
    for (const reporter of ['ana', 'ben', 'cleo']) await post('/synonyms', { term, means, reporter })
  }
  for (const query of Object.keys(asked)) {
    await eventually(`${query} finds something`, async () => (await found(query)).results.length > 0)
  }
  const ended = new Promise(resolve => app.once('exit', resolve))
  app.kill('SIGTERM')
  assert.equal(await ended, 0)
})
