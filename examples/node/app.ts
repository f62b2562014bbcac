// A search of cards over HTTP that learns from its users: it finds what they call things, records what they search, and takes
// their ratings and corrections. See docs/integration/node.md.

import { randomUUID } from 'node:crypto'

import { EmendError, Feedback, Node, QueryRecorder } from '@emend/client'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'

const CARDS = [
  { id: 'c-1', title: 'Fireball', text: 'deals 3 damage to a player' },
  { id: 'c-2', title: 'Shield', text: 'prevents the next damage' },
  { id: 'c-3', title: 'Recall', text: 'returns a creature to its owner’s hand' },
  { id: 'c-4', title: 'Rebirth', text: 'returns a creature from the graveyard to play' },
]
const namespace = 'cards'
const [feedbackAddress = '127.0.0.1:7401', learningAddress = '127.0.0.1:7402'] = process.argv.slice(2)

const node = new Node(learningAddress, { namespaces: [namespace] })
const feedback = new Feedback(feedbackAddress, { namespace })
const recorder = new QueryRecorder(feedbackAddress, { namespace })

// [search]
/** Cards that have each word of the query, or another term for it. */
function search(query: string) {
  const { groups } = node.expand(namespace, query)
  const words = groups.reduceRight((text, { start, end }) => `${text.slice(0, start)} ${text.slice(end)}`, query)
  const wanted = [...groups.map(({ alternatives }) => alternatives), ...words.split(/\s+/).filter(Boolean).map(word => [word])]
  return CARDS.filter(({ title, text }) => {
    const card = `${title} ${text}`.toLowerCase()
    return wanted.every(terms => terms.some(term => card.includes(term.toLowerCase())))
  })
}
// [/search]

const app = new Hono()

// [routes]
app.get('/search', context => {
  const query = context.req.query('q') ?? ''
  const results = query.trim() === '' ? [] : search(query)
  const queryId = randomUUID()
  const topResults = results.map(({ id, title }) => ({ objectId: id, title, score: 1 }))
  if (query.trim() !== '') recorder.query({ queryId, queryText: query, hitCount: results.length, topResults })
  return context.json({ queryId, results })
})

app.post('/rate', async context => {
  const { queryId, value, reporter, reason } = await context.req.json()
  const { feedbackId } = await feedback.rate(queryId, value, { reporter, reason })
  return context.json({ feedbackId })
})

app.post('/synonyms', async context => {
  const { term, means, reporter } = await context.req.json()
  const { state, message } = await feedback.synonyms(means, [term], { reporter, wait: true })
  return context.json({ state, message })
})
// [/routes]

app.onError((error, context) => {
  if (!(error instanceof EmendError)) throw error
  const statuses: Record<string, ContentfulStatusCode> = { INVALID_ARGUMENT: 400, RESOURCE_EXHAUSTED: 429 }
  return context.json({ error: error.message, violations: error.violations }, statuses[error.code] ?? 503)
})

await node.ready()
const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env.PORT ?? 8080) }, ({ port }) => {
  console.log(`listening on http://127.0.0.1:${port}`)
})
process.once('SIGTERM', () => {
  server.close()
  void Promise.all([recorder.close(), node.close()]).finally(() => feedback.close())
})
