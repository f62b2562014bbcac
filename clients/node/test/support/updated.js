// A node in a process of its own: asked for a revision, it says what it answers there and how much memory it takes.
'use strict'

const { Node } = require('@emend/client')

const [address, phrases, within] = process.argv.slice(2)
const node = new Node(address, { id: 'updated' })
let told = 0
node.on('change', ({ changes }) => (told += changes.length))

process.on('message', async revision => {
  await node.waitFor(revision, { timeout: Number(within) })
  const verbs = new Set()
  for (let number = 0; number < Number(phrases); number += 1) verbs.add(node.resolve('updates', `phrase ${number}`).choice)
  // What JavaScript would collect is none of the memory that is kept.
  globalThis.gc()
  process.send({ resident: process.memoryUsage.rss(), verbs: [...verbs], told })
})
process.on('disconnect', () => node.close())
