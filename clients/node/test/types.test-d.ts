// What a TypeScript program may write, and what it may not: checked by `tsc --strict`, never run.

import { EmendError, Evidence, Feedback, Node, Outputs, QueryRecorder, Review, setLogger } from '@emend/client'
import type { CallOptions, Recorded, Resolution, Status } from '@emend/client'
import type { Candidate, OutcomeState, Query } from '@emend/client/messages'

export async function program(): Promise<void> {
  await using node = new Node(['learning-0:7402', 'learning-1:7402'], {
    id: 'search-1',
    cacheDir: '/var/cache/emend',
    kinds: ['INVOCATION_PHRASE'],
    ca: 'ca.pem',
  })
  node.on('change', ({ revision, changes }) => {
    const first: string | undefined = changes[0]?.kind
    console.log(revision.toFixed(), first)
  })
  // @ts-expect-error: there is no such event.
  node.on('changed', () => {})
  const hit: Resolution = node.resolve('shop', 'hello', { candidates: [['greet', 0.7]], user: 'ana' })
  const choice: string | undefined = hit.choice
  // @ts-expect-error: it may be undefined.
  const certain: string = hit.choice
  // @ts-expect-error: a phrase means a verb or an entity.
  node.resolve('shop', 'hello', { kind: 'SYNONYM' })
  const [best] = node.rank('shop', [{ host: 'arxiv.org', score: 1, title: 'paper' }])
  const title: string | undefined = best?.title
  const status: Status = node.status()
  const why: string | undefined = status.lastError

  using feedback = new Feedback('feedback:7401', { namespace: 'shop', tokenFile: 'token' })
  const options: CallOptions = { timeout: 1_000, signal: AbortSignal.timeout(500) }
  const recorded: Recorded = await feedback.verb('hello', { correct: 'greet', reporter: 'ana', wait: true, ...options })
  const state: OutcomeState = recorded.state
  // @ts-expect-error: what is right must be said.
  await feedback.verb('hello', { insteadOf: 'greet' })
  // @ts-expect-error: 2 is no rating.
  await feedback.rate('q-1', 2)
  // @ts-expect-error: a decision about a domain has a reason.
  await feedback.blockDomain('spam.example', {})
  for await (const stored of feedback.list({ receivedFrom: '2026-01-31T00:00:00Z', pageSize: 10 })) {
    const at: number | undefined = stored.receivedAt?.getTime()
    console.log(at)
  }

  const review = new Review('learning:7402', { namespace: 'shop' })
  const open: Candidate[] = []
  for await (const candidate of review.candidates({ statuses: ['AWAITING_REVIEW'] })) open.push(candidate)
  // @ts-expect-error: there is no such status.
  review.candidates({ statuses: ['OPEN'] })
  const answer = await review.call('emend.learning.v1.CandidateService/GetCandidate', { candidateId: 'x' })
  const same: Candidate | undefined = answer.candidate
  // @ts-expect-error: there is no such method.
  await review.call('emend.learning.v1.CandidateService/Get', {})

  const claims = new Evidence('learning:7402').claims({ namespace: 'research' })
  const first = await claims.next()
  if (!first.done) console.log(first.value.confidence?.alpha.toFixed(2))
  const { text } = await new Outputs('learning:7402').renderPrompt('INTERPRET', { variables: { tone: 'brief' } })
  const recorder = new QueryRecorder('feedback:7401', { namespace: 'shop' })
  const query: Partial<Query> = { queryId: 'q-1', queryText: 'hello', hitCount: 0 }
  const queued: boolean = recorder.query(query)
  setLogger(({ level, message }) => console.log(level, message), 'warn')
  try {
    await recorder.close()
  } catch (error) {
    if (error instanceof EmendError) console.log(error.code, error.violations[0]?.field)
  }
  console.log(choice, certain, title, why, state, same, text, queued)
}
