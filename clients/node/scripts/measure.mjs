// What the package costs beside a Map: import, loading, memory, look-ups. `cargo xtask bench clients` runs it, and prints what it
// says beside what the other clients say.
//
//     node clients/node/scripts/measure.mjs LEARNING NAMESPACE ROWS
//
// LEARNING is the learning service's address, ROWS what was learned in the namespace: `phrase,verb` and a line for each.

import { readFileSync } from 'node:fs'

// The same in every language: see clients/binding/examples/measure.rs.
const SAMPLE = 1 << 16
const STRIDE = 245_489
const ROUNDS = 9

const [learning, namespace, rows] = process.argv.slice(2)

const beforeImport = performance.now()
const { Node } = await import('@emend/client')
const figures = { import_ms: performance.now() - beforeImport }

const since = performance.now()
const node = new Node(learning, { id: 'measured-in-node', namespaces: [namespace] })
await node.ready({ timeout: 300_000 })
figures.load_s = (performance.now() - since) / 1e3
figures.memory_mb = process.memoryUsage().rss / 1e6

const lines = readFileSync(rows, 'utf8').trimEnd().split('\n').slice(1)
const map = new Map(lines.map(line => line.split(',')))
const phrases = [...map.keys()]
const known = Array.from({ length: SAMPLE }, (_, place) => phrases[(place * STRIDE) % phrases.length])
const unknown = known.map(phrase => `${phrase} nobody knows`)
figures.known_ns = nanoseconds(known, phrase => node.resolve(namespace, phrase).choice !== undefined)
figures.unknown_ns = nanoseconds(unknown, phrase => node.resolve(namespace, phrase).choice === undefined)
figures.map_ns = nanoseconds(known, phrase => map.get(phrase) !== undefined)
await node.close()
console.log(JSON.stringify(figures))

/** The median of some rounds, for one look-up. Fails if an answer is wrong. */
function nanoseconds(phrases, isRight) {
  const rounds = []
  for (let round = 0; round < ROUNDS; round += 1) {
    let right = 0
    const begins = process.hrtime.bigint()
    for (const phrase of phrases) right += isRight(phrase) ? 1 : 0
    rounds.push(Number(process.hrtime.bigint() - begins) / phrases.length)
    if (right !== phrases.length) throw new Error(`${phrases.length - right} answers are wrong`)
  }
  return rounds.sort((one, other) => one - other)[ROUNDS >> 1]
}
