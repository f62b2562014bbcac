// A child process with a node of its own, which ends by itself.
'use strict'

const { Node } = require('@emend/client')

async function main() {
  const node = new Node(process.argv[2], { id: 'child' })
  await node.ready()
  process.send(node.resolve('shop', 'hello').choice)
  await node.close()
  process.disconnect()
}

main()
