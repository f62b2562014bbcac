// How programs end, and what threads and child processes may do.
'use strict'

const assert = require('node:assert/strict')
const { execFileSync, fork } = require('node:child_process')
const { after, before, describe, test } = require('node:test')
const { Worker } = require('node:worker_threads')

const { Node, Review } = require('@emend/client')
const { Pair } = require('./support/pair.js')

describe('processes and threads', () => {
  let pair

  before(async () => {
    pair = await Pair.start()
    const review = new Review(pair.learning, { namespace: 'shop' })
    await review.put({ kind: 'INVOCATION_PHRASE', key: 'hello' }, { invocationPhrase: { verb: 'greet' } })
    review.close()
  })
  after(() => pair.stop())

  /** Runs a program that has the addresses, and says what it printed. */
  function printed(program) {
    const head = `
      const { Feedback, Node, QueryRecorder, setLogger } = require('@emend/client')
      const [feedbackAddress, learningAddress] = process.argv.slice(1)
      const main = async () => {${program}}
      main()`
    const words = ['-e', head, pair.feedback, pair.learning]
    return execFileSync(process.execPath, words, { cwd: __dirname, encoding: 'utf8', timeout: 20_000 }).trim()
  }

  test('a node that is open keeps no process from ending', () => {
    const program = `
      const node = new Node(learningAddress)
      node.on('change', () => {})
      setLogger(() => {}, 'debug')
      await node.ready()
      console.log(node.resolve('shop', 'hello').choice)`
    assert.equal(printed(program), 'greet')
  })

  test('a process ends after everything is closed, with what was recorded sent', () => {
    const program = `
      const node = new Node(learningAddress)
      const feedback = new Feedback(feedbackAddress, { namespace: 'shop' })
      const recorder = new QueryRecorder(feedbackAddress, { namespace: 'shop' })
      await node.ready()
      recorder.query({ queryId: 'q-1', queryText: 'hello', hitCount: 1 })
      await recorder.close()
      await node.close()
      feedback.close()
      console.log(recorder.counts().sent, node.resolve('shop', 'hello').choice)
      await feedback.settings().catch(error => console.log(error.code))`
    assert.equal(printed(program), '1 greet\nCANCELLED')
  })

  test('process.exit while calls are under way ends it at once', () => {
    const program = `
      const node = new Node(learningAddress)
      node.waitFor(1e9).catch(() => {})
      await node.ready()
      console.log('exits')
      process.exit(0)`
    assert.equal(printed(program), 'exits')
  })

  test('a worker thread has a node of its own, and may be terminated with it', async () => {
    const program = `
      const { parentPort, workerData } = require('node:worker_threads')
      const { Node } = require('@emend/client')
      const node = new Node(workerData.learning, { id: workerData.id })
      node.on('change', () => {})
      node.ready().then(() => parentPort.postMessage(node.resolve('shop', 'hello').choice))
      setInterval(() => {}, 1000)`
    const own = new Node(pair.learning, { id: 'main' })
    await own.ready()
    const workers = [1, 2, 3].map(number => {
      const workerData = { learning: pair.learning, id: `worker-${number}` }
      return new Worker(program, { eval: true, workerData, argv: [] })
    })
    const answers = await Promise.all(workers.map(worker => new Promise((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
    })))
    assert.deepEqual(answers, ['greet', 'greet', 'greet'])
    await Promise.all(workers.map(worker => worker.terminate()))
    assert.equal(own.resolve('shop', 'hello').choice, 'greet')
    await own.close()
  })

  test('a forked child has a node of its own', async () => {
    const child = fork(require.resolve('./support/child.js'), [pair.learning])
    const answer = await new Promise((resolve, reject) => {
      child.once('message', resolve)
      child.once('error', reject)
    })
    assert.equal(answer, 'greet')
    const code = await new Promise(resolve => child.once('exit', resolve))
    assert.equal(code, 0)
  })
})
