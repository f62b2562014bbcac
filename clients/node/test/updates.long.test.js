// A node under 1,000 updates a second: it keeps up, answers, and needs no more memory as time goes by. Ten minutes of it each night
// (EMEND_TEST_LONG), some seconds on each change.
'use strict'

const assert = require('node:assert/strict')
const { fork } = require('node:child_process')
const { once } = require('node:events')
const { test } = require('node:test')
const { setTimeout: pause } = require('node:timers/promises')

const { xxh3 } = require('@node-rs/xxhash')

const { serve } = require('./support/stream.js')
const { Fixed64, cursor, encoded } = require('./support/wire.js')

const SECONDS = process.env.EMEND_TEST_LONG ? 600 : 6
const RATE = 1_000
const PHRASES = 1_000
/** Memory is read so many times; what is read first is still warming up. */
const [MARKS, WARM] = [12, 3]
/** How many seconds it may be late on a machine that does other things, too. */
const BEHIND = 60
/** What is sent together, so that the pace does not depend on how finely a timer works. */
const BURST = 20
const EPOCH = '0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f20'
const INSTALLATION = '0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10'

const at = revision => cursor({ epoch: EPOCH, revision, filter_hash: '7' })

/** The phrases take turns; what they mean does not change, their revision does. */
function resource(revision) {
  const phrase = `phrase ${revision % PHRASES}`
  const key = encoded([1, 'updates'], [2, 1], [3, phrase])
  const value = encoded([1, phrase], [2, 1], [10, encoded([1, 'walk'])])
  return encoded([1, key], [2, revision], [3, value], [4, new Fixed64(xxh3.xxh64(value).toString(16))])
}

/** One message with a change of each revision after what is held. */
function update(held, revision) {
  const changes = []
  for (let one = held + 1; one <= revision; one += 1) changes.push([3, encoded([1, one], [2, resource(one)], [4, 1])])
  return encoded([5, encoded([1, held], [2, revision], ...changes, [4, 1], [5, at(revision)])])
}

async function* updates() {
  yield encoded([2, encoded([2, 1], [4, INSTALLATION])])
  yield encoded([4, encoded([1, at(0)])])
  yield update(0, PHRASES)
  const begins = performance.now()
  for (let sent = 0; sent < SECONDS * RATE; sent += 1) {
    if (sent % BURST === 0) await pause(Math.max(0, begins + (sent * 1_000) / RATE - performance.now()))
    yield update(PHRASES + sent, PHRASES + sent + 1)
  }
}

test('a node keeps up with 1,000 updates a second in the same memory', async t => {
  const server = await serve({ then: updates })
  t.after(() => server.close())
  const execArgv = ['--expose-gc']
  const node = fork(require.resolve('./support/updated.js'), [server.address, String(PHRASES), String((SECONDS + BEHIND) * 1_000)], { execArgv })
  const begins = performance.now()
  const resident = []
  let told
  for (let mark = 1; mark <= MARKS; mark += 1) {
    const sent = Math.floor((SECONDS * RATE * mark) / MARKS)
    node.send(PHRASES + sent)
    const [said] = await once(node, 'message')
    const behind = (performance.now() - begins) / 1_000 - sent / RATE
    assert.deepEqual(said.verbs, ['walk'])
    assert.ok(behind < BEHIND, `${behind} s behind`)
    resident.push(said.resident / 1e6)
    told = said.told
  }
  t.diagnostic(`resident MB at ${MARKS} times over ${SECONDS} s: ${resident.map(one => one.toFixed(1))}; told ${told}`)
  node.disconnect()
  const [code] = await once(node, 'exit')
  assert.equal(code, 0)
  assert.ok(told > 0)
  assert.ok(Math.max(...resident.slice(WARM)) < resident[WARM] * 1.05 + 4, String(resident))
})
