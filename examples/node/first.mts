// A backend's first program with Emend: what people say is wrong, and what it answers from then on. Run it beside `emend up`.

import { Feedback, Node, QueryRecorder } from '@emend/client'

const [feedbackAddress = '127.0.0.1:7401', learningAddress = '127.0.0.1:7402'] = process.argv.slice(2)

// Connects in the background, keeps a copy on disk, and never waits for the network when it is asked something.
const node = new Node(learningAddress, { id: 'search-1', cacheDir: './emend-cache' })
await node.ready()

// For every query, ask what was learned before your own search decides.
const hit = node.resolve('fund-admin', 'set up a CSA', { candidates: [['create_csa', 0.71], ['create_isda', 0.69]] })
console.log(hit.choice, hit.prohibited, hit.feedbackHint)

// Three people say what is right.
const feedback = new Feedback(feedbackAddress, { namespace: 'fund-admin' })
for (const reporter of ['jane', 'joe', 'june']) {
  const correction = { correct: 'create_isda', insteadOf: 'create_csa', reporter, wait: true }
  const { message, appliedRevision } = await feedback.verb('set up a CSA', correction)
  console.log(message)
  if (appliedRevision !== undefined) await node.waitFor(appliedRevision)
}
console.log(node.resolve('fund-admin', 'Set up a CSA').choice)

// What else a node answers, from memory.
console.log(node.expand('cards', 'damage to a player', { mode: 'keyword' }).groups)
console.log(node.tuning('cards', 'HYBRID').retryPlan().length)
console.log(node.trust('research', 'arxiv.org').level, node.isBlocked('research', 'spam.example'))
console.log(node.rank('research', [{ host: 'arxiv.org', score: 0.8 }]))
console.log(node.renderPrompt('notes', 'SUMMARIZE_DAILY', { user: 'ana' }))

// What was searched, and how its answer was rated.
const recorder = new QueryRecorder(feedbackAddress, { namespace: 'cards' })
recorder.query({ queryId: 'q-1', queryText: 'damage to the face', hitCount: 0 })
await recorder.close()
const rated = await feedback.rate('q-1', -1, { namespace: 'cards', reporter: 'ana', reason: 'nothing found' })
console.log(rated.feedbackId)

feedback.close()
await node.close()
