// The vectors that clients in every language are held to, of the groups that this package claims. What a node holds comes to it
// as it does in life: over a stream.
'use strict'

const assert = require('node:assert/strict')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { after, describe, test } = require('node:test')

const { xxh3 } = require('@node-rs/xxhash')

const { Feedback, Node, normalize } = require('@emend/client')
const { eventually } = require('./support/pair.js')
const { serve } = require('./support/stream.js')
const { Fixed64, cursor, digest, encoded } = require('./support/wire.js')

const VECTORS = join(__dirname, '../../../conformance')

/** The lines of a group. */
function lines(group) {
  const text = readFileSync(join(VECTORS, `${group}.jsonl`), 'utf8')
  const found = text.split('\n').filter(Boolean).map(line => JSON.parse(line))
  assert.notEqual(found.length, 0, `${group} is empty`)
  return found.map(line => ({ ...line, name: `${group}/${line.id}` }))
}

/** Fails if something else is answered, and names the line. */
function agrees({ name, checks }, given, answer) {
  try {
    assert.deepEqual(given, answer)
  } catch (error) {
    error.message = `${name}: ${checks}: ${error.message}`
    throw error
  }
}

/** The answer with its first text, number or truth changed; with a text where there is none. */
function spoilt(answer) {
  if (Array.isArray(answer)) return answer.length > 0 ? [spoilt(answer[0]), ...answer.slice(1)] : ['spoilt']
  if (typeof answer === 'boolean') return !answer
  if (typeof answer === 'string') return `${answer}x`
  if (typeof answer === 'number') return -1
  if (answer === null) return 'spoilt'
  const [first] = Object.keys(answer).sort()
  return { ...answer, [first]: spoilt(answer[first]) }
}

/** A test for each line of a group; and that the one in the middle is named if its answer, or a part of it, is another. */
function holds(group, check, parts) {
  describe(group, { concurrency: true }, () => {
    const all = lines(group)
    for (const line of all) test(`${line.id}: ${line.checks}`, () => check(line))
    const line = all[Math.floor(all.length / 2)]
    for (const part of parts ?? [undefined]) {
      test(`a line whose answer is changed is named${part === undefined ? '' : `: ${part}`}`, async () => {
        const { answer } = line
        const changed = part === undefined ? spoilt(answer) : { ...answer, [part]: spoilt(answer[part]) }
        const named = ({ message }) => message.startsWith(`${line.name}: `)
        // Long enough for what a node tells every ten seconds at most.
        await assert.rejects(async () => check({ ...line, answer: changed }, 15_000), named)
      })
    }
  })
}

const closing = []
after(() => Promise.all(closing.map(close => close())))

/** How a node says that a stream ended, and what the vectors call it; whatever else ends one is not the node's doing. */
const ENDS = [
  ['drained by the server', 'DRAIN'],
  ['the digests differ', 'DIGEST_MISMATCH'],
  ['another installation answers', 'INSTALLATION_MISMATCH'],
  ['protocol violation', 'PROTOCOL_VIOLATION'],
]
const EPOCH = '0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f20'
const INSTALLATION = '0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10'
/** The checksum of no bytes at all. */
const NOTHING = xxh3.xxh64(Buffer.alloc(0)).toString(16)

const states = new Map(lines('stream').map(line => [line.id, line]))
const messages = ({ input }) => input.streams.map(({ messages }) => messages.map(message => Buffer.from(message, 'base64')))

/** A node that is sent these streams, and how they ended so far. */
async function follow(id, told) {
  const server = await serve(told)
  const node = new Node(server.address, { id, includeUserScoped: true })
  const ended = []
  node.on('disconnected', ({ reason }) => ended.push(ENDS.find(([said]) => reason.startsWith(said))?.[1] ?? null))
  closing.push(async () => {
    await node.close()
    await server.close()
  })
  return { node, server, ended }
}

const nodes = new Map()

/** A node that has followed the streams of a state. */
function following(state) {
  if (!nodes.has(state)) nodes.set(state, followed(state))
  return nodes.get(state)
}

async function followed(state) {
  const line = states.get(state)
  const { node, server } = await follow(`conforms-${state}`, { streams: messages(line) })
  const { revision } = line.answer.position ?? { revision: 0 }
  const opened = line.input.streams.length
  await eventually(`${state} is followed`, () => server.cursors.length > opened && node.status().revision >= revision, 60_000)
  return node
}

/** Absent where the vectors say null. */
const orNull = value => value ?? null

/** What this package answers. */
const answers = {
  async normalisation({ text, characters }) {
    if (characters === undefined) return { key: normalize(text) }
    const [first, last] = characters
    const forms = []
    for (let code = first; code <= last; code += 1) {
      if (code < 0xd800 || code > 0xdfff) forms.push(normalize(`a${String.fromCodePoint(code)}b`))
    }
    return { xxh3: xxh3.xxh64(Buffer.from(forms.join('\n'))).toString(16).padStart(16, '0') }
  },

  async lookups({ state, namespace, phrase, kind, user, candidates }) {
    const node = await following(state)
    const named = kind === 1 ? 'INVOCATION_PHRASE' : 'ENTITY_ALIAS'
    const found = node.resolve(namespace, phrase, { kind: named, user, candidates })
    const { choice, score, revision, scope } = found
    return {
      found: choice === undefined ? null : { value: choice, score, revision, scope },
      found_prohibited: found.choiceProhibited,
      prohibited: found.prohibited,
      feedback_hint: found.feedbackHint,
      phrase: found.phrase,
      revision: found.stateRevision,
    }
  },

  async near({ state, namespace, phrase, kind, user }) {
    const node = await following(state)
    await node.waitNear()
    const named = kind === 1 ? 'INVOCATION_PHRASE' : 'ENTITY_ALIAS'
    const { near, nearStatus } = node.resolve(namespace, phrase, { kind: named, user, near: true })
    if (near === undefined) return { status: nearStatus.toLowerCase(), near: null }
    const because = near.because.map(it => [it.phrase, it.choice, `${it.similarity}`])
    return { status: nearStatus.toLowerCase(), near: { ...near, confidence: `${near.confidence}`, because } }
  },

  async expansion({ state, namespace, text, term, mode, user }) {
    const node = await following(state)
    if (term !== undefined) return { terms: node.synonyms(namespace, term, { user }) }
    const { groups, text: rendered } = node.expand(namespace, text, { mode: mode === 'embedding' ? mode : 'keyword', user })
    return {
      groups: groups.map(({ start, end, alternatives }) => ({ text: text.slice(start, end), alternatives })),
      rendered,
    }
  },

  async prompts({ state, namespace, target, variables, label, user, language }) {
    const node = await following(state)
    try {
      const options = { variables, label, user, language: language?.toUpperCase() }
      const rendered = node.renderPrompt(namespace, target, options)
      return { rendered: rendered === undefined ? null : { text: rendered.text, version: rendered.version } }
    } catch (error) {
      return { error: { code: error.code, violations: error.violations } }
    }
  },

  async errors({ state, namespace, phrase, ...error }) {
    if (phrase !== undefined) {
      const node = await following(state)
      return { ...refusal(() => node.resolve(namespace, phrase)) }
    }
    const server = await serve({ error })
    // Nothing is called again: the first answer is the one that is looked at.
    const feedback = new Feedback(server.address, { namespace: 'shop', timeout: 1_000 })
    const failed = await feedback.call('emend.feedback.v1.FeedbackService/RedriveDeadLetters', {}).then(
      () => assert.fail('it did not fail'),
      reason => reason,
    )
    feedback.close()
    await server.close()
    return {
      code: failed.code,
      reason: orNull(failed.reason),
      message: failed.explanation,
      violations: failed.violations,
      preconditions: failed.preconditions.map(({ kind, ...rest }) => ({ type: kind, ...rest })),
      retry_after_ms: orNull(failed.retryAfter),
      request_id: orNull(failed.requestId),
    }
  },
}

function refusal(call) {
  try {
    call()
  } catch ({ code, violations }) {
    return { code, violations }
  }
  return assert.fail('it was not refused')
}

for (const [group, answer] of Object.entries(answers)) {
  holds(group, async line => agrees(line, await answer(line.input), line.answer))
}

/** Tells a node what it should hold, and if it agrees, one change more. */
function holding(position, groups, installation) {
  const revision = position.revision + 1
  const key = encoded([1, 'marker'], [2, 1], [3, 'holds'])
  const resource = encoded([1, key], [2, revision], [3, Buffer.alloc(0)], [4, new Fixed64(NOTHING)])
  const change = encoded([1, revision], [2, resource])
  const at = cursor({ ...position, revision })
  return [
    encoded([1, encoded([1, cursor(position)], [2, installation])]),
    encoded([6, encoded([1, cursor(position)], ...groups.map(group => [2, digest(group)]))]),
    encoded([5, encoded([1, position.revision], [2, revision], [3, change], [4, 1], [5, at])]),
  ]
}

let followers = 0

async function holdsWhatTheMessagesSay(line) {
  const { answer, input } = line
  const { next_cursor: next, installation, digests, position } = answer
  const accepted = input.streams.findIndex(({ accept }) => accept !== undefined)
  const then = () => (next === null ? [] : holding(next, digests, installation))
  followers += 1
  const { node, server, ended } = await follow(`holds-${followers}`, {
    streams: messages(line),
    waits: new Set([accepted - 1]),
    then,
  })
  if (accepted >= 0) {
    await eventually("the first installation's is there", () => node.status().revision > 0)
    node.acceptInstallation(input.streams[accepted].accept)
    server.mayEnd()
  }
  const count = input.streams.length
  await eventually('all streams were opened', () => server.cursors.length > count, 60_000)
  agrees(line, server.cursors.slice(0, count), answer.streams.map(stream => stream.cursor))
  agrees(line, server.cursors[count], next)
  // An event may be told after the next stream was opened.
  await eventually('the end of each stream is told', () => ended.length >= count)
  agrees(line, ended.slice(0, count), answer.streams.map(stream => stream.ended))
  // It agrees with the digests of all that it should hold, or it would leave before this.
  if (next !== null) await eventually('it holds what it should', () => node.status().revision === position.revision + 1)
  agrees(line, node.status().installation ?? null, installation)
}

holds('stream', holdsWhatTheMessagesSay, ['streams', 'next_cursor'])

test('a node that holds something else than the line says is told apart', async () => {
  const line = states.get('update')
  const { next_cursor: next, installation, digests } = line.answer
  const others = digests.map(group => ({ ...group, hash: '00'.repeat(16) }))
  const then = () => holding(next, others, installation)
  const { node, ended } = await follow('holds-others', { streams: messages(line), then })
  await eventually('it leaves the stream', () => ended[2] === 'DIGEST_MISMATCH', 60_000)
  assert.equal(node.status().revision, next.revision)
})

/** A snapshot of these resources, with these digests. */
function snapshot(items, digests) {
  const revision = 2n ** 63n - 1n
  const resources = items.map(item => {
    const key = encoded([3, item.key], [4, item.qualifier], [5, item.user_id])
    const value = [3, Buffer.from(item.value_bytes ?? '', 'hex')]
    const resource = encoded([1, key], [2, BigInt(item.revision)], value, [4, new Fixed64(item.value_checksum)])
    return encoded([3, encoded([1, resource], [2, item.namespace], [3, item.kind])])
  })
  const at = cursor({ epoch: EPOCH, revision, filter_hash: '0' })
  return [
    encoded([2, encoded([1, revision], [2, 1], [3, items.length], [4, INSTALLATION])]),
    ...resources,
    encoded([4, encoded([1, at], ...digests.map(group => [2, digest(group)]))]),
  ]
}

const ALL = 1n << 128n
const hex = hash => (hash % ALL).toString(16).padStart(32, '0')

async function hasTheDigests(line) {
  const { input, answer } = line
  const items = input.items.map((item, place) => ({ ...item, value_checksum: answer.items[place].value_checksum }))
  const groups = new Map()
  items.forEach(({ namespace, kind, user_id: user }, place) => {
    const name = JSON.stringify([namespace, kind, user !== ''])
    const group = groups.get(name) ?? { namespace, kind, user_scoped: user !== '', count: 0, sum: 0n }
    group.count += 1
    group.sum += BigInt(`0x${answer.items[place].hash}`)
    groups.set(name, group)
  })
  const all = [...groups.values()]
  agrees(line, hex(all.reduce((sum, group) => sum + group.sum, 0n)), answer.hash)
  const told = spoil => all.map(group => ({ ...group, hash: hex(group.sum + spoil) }))
  const [right, wrong] = await Promise.all([
    follow(`right-${line.id}`, { streams: [snapshot(items, told(0n))] }),
    follow(`wrong-${line.id}`, { streams: [snapshot(items, told(1n))] }),
  ])
  await eventually('both streams ended', () => right.ended.length > 0 && wrong.ended.length > 0)
  agrees(line, [right.ended[0], wrong.ended[0]], [null, items.length > 0 ? 'DIGEST_MISMATCH' : null])
}

holds('digests', hasTheDigests, ['hash'])

const reporting = new Map()

/** What the node of a line says: it follows the streams once. */
function reportsOf({ id, input }) {
  if (!reporting.has(id)) reporting.set(id, follow(`reports-${id}`, { streams: messages(states.get(input.state)) }))
  return reporting.get(id)
}

async function reportsWhatItHasApplied(line, within = 30_000) {
  const { server } = await reportsOf(line)
  const count = messages(states.get(line.input.state)).length
  await eventually('all streams were opened', () => server.cursors.length > count, 60_000)
  const { report } = line.answer
  if (report === null) {
    agrees(line, server.reports, [])
    return
  }
  // How long applying took is measured by the node's own clock: no message decides it.
  const { delays: _, ...wanted } = { ...report, node_id: `reports-${line.id}` }
  const isLast = () => JSON.stringify(sorted(server.reports.at(-1))) === JSON.stringify(sorted(wanted))
  const said = await eventually('it is reported', isLast, within).catch(() => server.reports.at(-1))
  if (said !== true) agrees(line, said, wanted)
}

holds('reports', reportsWhatItHasApplied)

/** With the fields of every object in one order. */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.keys(value).sort().map(name => [name, sorted(value[name])]))
}
