// What a node answers, and what the clients say, against a real pair.
'use strict'

const assert = require('node:assert/strict')
const { randomUUID } = require('node:crypto')
const { after, before, describe, test } = require('node:test')

const schema = require('../lib/schema.json')
const { EmendError, Evidence, Feedback, Node, Outputs, QueryRecorder, Review } = require('@emend/client')
const { Pair, eventually } = require('./support/pair.js')

describe('with a pair', () => {
  let pair, node, feedback, review, evidence, outputs

  before(async () => {
    pair = await Pair.start()
    node = new Node(pair.learning, { id: 'search-1', includeUserScoped: true })
    feedback = new Feedback(pair.feedback, { namespace: 'shop' })
    review = new Review(pair.learning, { namespace: 'shop' })
    evidence = new Evidence(pair.learning, { namespace: 'shop' })
    outputs = new Outputs(pair.learning, { namespace: 'shop' })
    await node.ready()
  })
  after(async () => {
    await node?.close()
    for (const client of [feedback, review, evidence, outputs]) client?.close()
    await pair?.stop()
  })

  /** Waits until the node has what a correction taught. */
  async function learned(recorded) {
    assert.equal(recorded.state, 'APPLIED', recorded.message)
    await node.waitFor(recorded.appliedRevision)
  }

  /** Three people say it. */
  async function agreed(say) {
    let last
    for (const reporter of ['ana', 'ben', 'cleo']) last = await say({ reporter, wait: true })
    await learned(last)
    return last
  }

  test('a verb that three people correct is what the node answers', async () => {
    const phrase = 'set up a CSA'
    const unknown = node.resolve('shop', phrase, { candidates: [['create_csa', 0.71], ['create_isda', 0.69]] })
    assert.equal(unknown.choice, undefined)
    assert.equal(unknown.score, 0)
    assert.equal(unknown.feedbackHint, true)
    const recorded = await agreed(about => feedback.verb(phrase, { correct: 'create_isda', insteadOf: 'create_csa', ...about }))
    assert.match(recorded.message, /create_isda/)
    assert.ok(recorded.feedback.receivedAt instanceof Date)
    const found = node.resolve('shop', '  SET up a csa ')
    assert.deepEqual(
      { ...found, stateRevision: undefined },
      {
        choice: 'create_isda',
        score: 1,
        prohibited: [],
        choiceProhibited: false,
        feedbackHint: false,
        scope: 'GLOBAL',
        revision: recorded.appliedRevision,
        stateRevision: undefined,
        phrase: 'set up a csa',
        near: undefined,
        nearStatus: 'NOT_ASKED',
      },
    )
    assert.ok(found.stateRevision >= found.revision)
  })

  test('what is prohibited is listed, and what was learned is not offered', async () => {
    await agreed(about => feedback.entity('the tower', { correct: 'e-1', ...about }))
    assert.equal(node.resolve('shop', 'The Tower', { kind: 'ENTITY_ALIAS' }).choice, 'e-1')
    await agreed(about => feedback.prohibit('the tower', 'e-1', about))
    const found = node.resolve('shop', 'the tower', { kind: 'ENTITY_ALIAS' })
    assert.equal(found.choice, undefined)
    assert.equal(found.choiceProhibited, true)
    assert.deepEqual(found.prohibited, ['e-1'])
  })

  test('what one user says for themselves is answered to that user alone', async () => {
    await learned(await feedback.phrase('my list', 'open_list', { reporter: 'ana', onlyForReporter: true, wait: true }))
    const found = node.resolve('shop', 'my list', { user: 'ana' })
    assert.equal(found.choice, 'open_list')
    assert.equal(found.scope, 'USER')
    assert.equal(node.resolve('shop', 'my list', { user: 'ben' }).choice, undefined)
  })

  test('synonyms are found in running text, at the places where JavaScript has them', async () => {
    await agreed(about => feedback.synonyms('プレイヤー', ['相手の顔'], about))
    const text = '🂡 相手の顔にダメージ'
    const { groups, text: keywords } = node.expand('shop', text)
    assert.equal(groups.length, 1)
    assert.equal(text.slice(groups[0].start, groups[0].end), '相手の顔')
    assert.ok(groups[0].alternatives.includes('プレイヤー'))
    assert.match(keywords, / OR /)
    assert.match(node.expand('shop', text, { mode: 'embedding' }).text, /プレイヤー$/)
    assert.deepEqual(node.synonyms('shop', '相手の顔'), ['プレイヤー'])
  })

  test('a tuning has its plan, and the defaults where nothing is set', async () => {
    const standard = node.tuning('shop', 'HYBRID')
    assert.deepEqual([standard.topK, standard.minScore], [10, 0.4])
    assert.deepEqual(
      standard.retryPlan().map(({ minScore, topK, expand }) => [minScore, topK, expand]),
      [
        [0.4, 10, false],
        [0.3, 20, false],
        [0.3, 20, true],
      ],
    )
    const tuning = { topK: 5, minScore: 0.2, confidences: [{ name: 'high', minScore: 0.8 }], suggestion: 'Try fewer words.' }
    await learned(await feedback.tuning('HYBRID', tuning, { wait: true }))
    const set = node.tuning('shop', 'HYBRID')
    assert.deepEqual([set.topK, set.minScore, set.suggestion], [5, 0.2, 'Try fewer words.'])
    assert.equal(set.confidence(0.9), 'high')
    assert.equal(set.confidence(0.5), undefined)
  })

  test('blocked sources are left out, and the others ranked by trust', async () => {
    await learned(await feedback.trustDomain('arxiv.org', 'ACADEMIC', { reason: 'a preprint server', wait: true }))
    await learned(await feedback.blockDomain('spam.example', { reason: 'spam', wait: true }))
    assert.equal(node.isBlocked('shop', 'www.spam.example'), true)
    assert.equal(node.isBlocked('shop', 'arxiv.org'), false)
    const trust = node.trust('shop', 'export.arxiv.org')
    assert.deepEqual([trust.level, trust.weight, trust.blocked], ['ACADEMIC', 0.9, false])
    assert.equal(trust.decidedBy.pattern, 'arxiv.org')
    assert.equal(node.trust('shop', 'unknown.example').decidedBy, undefined)
    const results = [
      { host: 'blog.example', score: 0.9, title: 'blog' },
      { host: 'spam.example', score: 1, title: 'spam' },
      { host: 'arxiv.org', score: 0.5, title: 'paper' },
    ]
    const ranked = node.rank('shop', results)
    assert.deepEqual(ranked.map(({ title }) => title), ['paper', 'blog'])
    assert.ok(Math.abs(ranked[0].score - 0.45) < 1e-9)
    await learned(await feedback.unblockDomain('spam.example', { reason: 'it got better', wait: true }))
    assert.equal(node.isBlocked('shop', 'spam.example'), false)
    assert.equal((await feedback.clearDomain('spam.example', { reason: 'nobody knows', wait: true })).state, 'APPLIED')
    const rules = []
    for await (const rule of evidence.domainRules({ includeEnded: true })) rules.push(rule.pattern)
    assert.deepEqual([...new Set(rules)].sort(), ['arxiv.org', 'spam.example'])
  })

  test('claims and edges are upserted, corrected, counted and exported', async () => {
    const graph = {
      pages: [{ pageId: 'p-1', url: 'https://arxiv.org/abs/1' }],
      fragments: [{ fragmentId: 'f-1', pageId: 'p-1', text: 'It is so.' }],
      claims: [{ claimId: 'c-1', taskId: 't-1', text: 'It is so.' }],
      edges: [
        {
          edgeId: 'e-1',
          taskId: 't-1',
          relation: 'SUPPORTS',
          nliConfidence: 0.9,
          source: { fragmentId: 'f-1' },
          target: { claimId: 'c-1' },
        },
      ],
    }
    assert.equal((await evidence.upsert(graph)).added, 4)
    assert.equal((await evidence.claim('c-1')).confidence.supportingCount, 1)
    await learned(await feedback.correctEdge('e-1', 'REFUTES', { wait: true }))
    assert.equal(node.edgeLabel('shop', 'e-1').relation, 'REFUTES')
    assert.equal(node.edgeLabel('shop', 'e-2'), undefined)
    await learned(await feedback.rejectClaim('c-1', { reason: 'wrong', reasonCode: 'WRONG', wait: true }))
    assert.deepEqual(
      [node.claimState('shop', 'c-1').decision, node.claimState('shop', 'c-1').reasonCode],
      ['REJECTED', 'WRONG'],
    )
    assert.equal((await feedback.restoreClaim('c-1', { reason: 'it is right', wait: true })).state, 'APPLIED')
    const edges = []
    for await (const edge of evidence.edges({ claimId: 'c-1' })) edges.push([edge.edgeId, edge.relation])
    assert.deepEqual(edges, [['e-1', 'REFUTES']])
    assert.equal((await evidence.reviewStats()).corrected, 1)
    const parts = []
    for await (const part of evidence.exportMaterials({ taskId: 't-1' })) parts.push(part)
    assert.ok(parts.some(part => JSON.stringify(part).includes('c-1')))
    assert.equal((await evidence.delete({ claimIds: ['c-1'], reason: 'over' })).claims, 1)
  })

  test('a prompt is put, rendered on the node and by the service, and gets better by ratings', async () => {
    const key = { kind: 'PROMPT', key: 'SUMMARIZE_DAILY', qualifier: 'production' }
    const variables = [{ name: 'tone', defaultValue: 'plain' }]
    const settings = [{ name: 'temperature', value: '0.2' }]
    const text = 'Summarise the text. Be {{tone}}.'
    const { revision } = await review.put(key, { prompt: { text, variables, settings } }, { reason: 'the first version' })
    await node.waitFor(revision)
    const rendered = node.renderPrompt('shop', 'SUMMARIZE_DAILY', { variables: { tone: 'brief' } })
    assert.deepEqual(rendered, { text: 'Summarise the text. Be brief.', version: 1, settings: { temperature: '0.2' } })
    assert.equal((await outputs.renderPrompt('SUMMARIZE_DAILY')).text, 'Summarise the text. Be plain.')
    assert.equal(node.renderPrompt('shop', 'SUMMARIZE_DAILY', { label: 'staging' }), undefined)
    assert.deepEqual(node.prompt('shop', 'SUMMARIZE_DAILY').variables, { tone: 'plain' })
    assert.throws(() => node.renderPrompt('shop', 'SUMMARIZE_DAILY', { variables: { mood: 'x' } }), /mood/)
    const rating = { target: 'SUMMARIZE_DAILY', targetId: 'o-1', inputText: 'A day.', outputText: 'Long.', issues: ['too long'] }
    await learned(await feedback.rateOutput({ ...rating, value: 'BAD', promptVersion: '1' }, { reporter: 'ana', wait: true }))
    assert.deepEqual(node.examples('shop', 'SUMMARIZE_DAILY').bad[0].issues, ['too long'])
    const stats = await outputs.stats('SUMMARIZE_DAILY')
    assert.deepEqual([stats.currentVersion, stats.badCounted], [1, 1])
    const targets = []
    for await (const { target } of outputs.allStats()) targets.push(target)
    assert.deepEqual(targets, ['SUMMARIZE_DAILY'])
    const versions = []
    for await (const { candidate } of outputs.promptVersions('SUMMARIZE_DAILY')) versions.push(candidate.value.prompt.version)
    assert.deepEqual(versions, [1])
    await assert.rejects(outputs.generateImprovement('SUMMARIZE_DAILY'), { reason: 'TOO_FEW_RATINGS' })
    const lines = []
    for await (const { line } of outputs.exportExamples('SUMMARIZE_DAILY')) lines.push(JSON.parse(line))
    assert.ok(Array.isArray(lines))
  })

  test('a profile is read from the service and from the node', async () => {
    const { profile } = await outputs.updateProfile('ana', { experienceYears: 7 })
    await node.waitFor(profile.revision)
    assert.equal(node.profile('shop', 'ana').experienceYears, 7)
    assert.equal((await outputs.profile('ana')).profile.experienceYears, 7)
    assert.equal(node.profile('shop', 'ben').experienceYears, undefined)

    await outputs.updateProfile('ana', { knownTechnologies: ['Docker'], learningGoals: ['Kubernetes'] })
    const learnings = [['docker-101', 'Docker'], ['go-101', 'Go'], ['k8s-101', 'Kubernetes']]
    const ranked = await outputs.rankLearnings('ana', { learnings: learnings.map(([id, topic]) => ({ id, topics: [topic] })) })
    assert.deepEqual([ranked.ids, ranked.leftOutIds], [['k8s-101', 'go-101'], ['docker-101']])
  })

  test('recorded queries are counted, rated and listed', async () => {
    const recorder = new QueryRecorder(pair.feedback, { namespace: 'shop' })
    const queryId = randomUUID()
    const topResults = [{ objectId: 'o-1', title: 'One', score: 0.9 }]
    assert.equal(recorder.query({ queryId, queryText: 'one', queryType: 'HYBRID', topResults, hitCount: 1 }), true)
    assert.equal(recorder.query({ queryId: randomUUID(), queryText: 'none', hitCount: 0 }), true)
    assert.equal(recorder.interaction({ queryId, objectId: 'o-1', action: 'click', position: 1 }), true)
    assert.equal(recorder.query({ queryId: '', queryText: 'no id' }), true)
    await recorder.flush()
    assert.deepEqual(recorder.counts(), { sent: 3, dropped: 0, invalid: 1 })
    assert.throws(() => recorder.query({ queryId, queryTxet: 'one' }), /queryTxet: Query has no such field/)
    const rated = await feedback.rate(queryId, -1, { reporter: 'ana', reason: 'not what I meant' })
    assert.equal(rated.feedback.correction.searchRating.value, 'DOWN')
    await assert.rejects(feedback.rate(queryId, 2), { code: 'INVALID_ARGUMENT' })
    const missed = await eventually('the queries are stored', async () => {
      const texts = []
      for await (const query of feedback.queries({ onlyWithoutHits: true })) texts.push(query.queryText)
      return texts.length > 0 && texts
    })
    assert.deepEqual(missed, ['none'])
    assert.equal((await feedback.stats()).total.negativeCount, 1)
    const labelled = await feedback.label(rated.feedbackId, { setTags: ['synonym_miss'], processed: true })
    assert.deepEqual(labelled.feedback.searchRating.tags, ['synonym_miss'])
    const exported = []
    for await (const { text } of feedback.exportRatings({ format: 'JSONL' })) exported.push(text)
    assert.match(exported.join(''), /not what I meant/)
    assert.equal((await feedback.negativeTerms()).negativeQueryCount, 1)
    await recorder.close()
    assert.equal(recorder.query({ queryId, queryText: 'late' }), false)
  })

  test('a reviewer approves, rejects, undoes and reverts', async () => {
    const said = await feedback.phrase('new york', 'open_map', { reporter: 'ana', wait: true })
    assert.equal(said.state, 'PENDING')
    const { candidateId } = said.feedback.outcome
    const { lease } = await review.lease(candidateId, { onBehalfOf: 'rita' })
    assert.equal(lease.actor.onBehalfOf, 'rita')
    await review.release(candidateId, { onBehalfOf: 'rita' })
    const approved = await review.approve(candidateId, { reason: 'clear', onBehalfOf: 'rita' })
    assert.equal(approved.candidate.status, 'APPLIED')
    await node.waitFor(approved.revision)
    assert.equal(node.resolve('shop', 'New York').choice, 'open_map')
    await assert.rejects(review.approve(candidateId), { code: 'FAILED_PRECONDITION' })
    await review.undo(candidateId, { onBehalfOf: 'rita' })
    const { candidate, votes } = await review.candidate(candidateId)
    assert.deepEqual([candidate.status, votes[0].reporterId], ['PENDING', 'ana'])
    const [done, refused] = await review.approveAll([{ candidateId }, { candidateId: randomUUID() }])
    assert.equal(done.candidate.status, 'APPLIED')
    assert.equal(refused.error.code, 'NOT_FOUND')
    const revisions = []
    for await (const revision of review.revisions({ key: 'new york' })) revisions.push(revision)
    assert.ok(revisions[0].committedAt instanceof Date)
    const reverted = await review.revert({ revision: revisions[0].revision, reason: 'a mistake' })
    await node.waitFor(reverted.revision)
    assert.equal(node.resolve('shop', 'new york').choice, undefined)
    const [rejected] = await review.rejectAll([{ candidateId, reason: 'no' }])
    assert.equal(rejected.candidate.status, 'REJECTED')
    const open = []
    for await (const { key } of review.candidates({ statuses: ['PENDING'] })) open.push(key.key)
    assert.ok(!open.includes('new york'))
    assert.ok((await review.queueStats()).days.length > 0)
  })

  test('a reviewer asks, comments and looks ahead', async () => {
    const said = await feedback.phrase('go home', 'open_home', { reporter: 'ana', wait: true })
    const { candidateId } = said.feedback.outcome
    const commented = await review.comment(candidateId, 'a common phrase', { onBehalfOf: 'rita' })
    assert.deepEqual([commented.comment, commented.actor.onBehalfOf], ['a common phrase', 'rita'])
    const changes = await review.preview(candidateId, { queries: [{ text: 'go home', searchCount: 3 }] })
    assert.deepEqual([changes.changedQueryCount, changes.changedSearchCount], [1, 3])
    const policy = { kind: 'INVOCATION_PHRASE', threshold: 1 }
    const preview = await review.previewPolicy({ policy, updateMask: ['threshold'] })
    assert.ok(preview.resources.some(({ key }) => key.key === 'go home'), JSON.stringify(preview))
    // Only what awaits review is asked about.
    await assert.rejects(review.askSecondOpinion(candidateId, 'is it?'), { code: 'FAILED_PRECONDITION' })
    await review.updatePolicy({ policy: { kind: 'PROHIBITION', riskLevel: 'HIGH' }, updateMask: ['riskLevel'] })
    let waits
    for (const reporter of ['ana', 'ben', 'cleo']) {
      waits = await feedback.prohibit('go home', 'delete_all', { reporter, wait: true })
    }
    assert.equal(waits.state, 'AWAITING_REVIEW', waits.message)
    const asked = await review.askSecondOpinion(waits.feedback.outcome.candidateId, 'is it?', { asked: 'ben', onBehalfOf: 'rita' })
    assert.deepEqual([asked.comment, asked.actor.onBehalfOf], ['is it?', 'rita'])
  })

  test('a client that is closed refuses calls', async () => {
    const closed = new Review(pair.learning, { namespace: 'shop' })
    await closed.policy('SYNONYM')
    closed.close()
    closed.close()
    const refused = { reason: 'CLOSED' }
    await assert.rejects(closed.policy('SYNONYM'), refused)
    await assert.rejects(closed.candidates().next(), refused)
    await assert.rejects(closed.watchQueue().next(), refused)
    await assert.rejects(closed.import([]), refused)
  })

  test('a list is read page by page', async () => {
    for (let number = 0; number < 5; number += 1) {
      await feedback.phrase(`page ${number}`, 'turn', { reporter: 'ana' })
    }
    const seen = []
    for await (const { correction } of feedback.list({ pageSize: 2, kind: 'INVOCATION_PHRASE' })) {
      seen.push(correction)
      if (seen.length === 5) break
    }
    assert.equal(seen[0].phraseMapping.phrase, 'page 4')
    assert.equal(seen[4].phraseMapping.phrase, 'page 0')
  })

  test('a batch has a result for each item', async () => {
    const [good, bad] = await feedback.submitAll(
      [{ correction: { phraseMapping: { phrase: 'a', verb: 'b' } } }, { correction: { phraseMapping: { phrase: '', verb: 'b' } } }],
      { wait: true },
    )
    assert.equal(good.state, 'PENDING')
    assert.equal(bad.error.code, 'INVALID_ARGUMENT')
    assert.match(JSON.stringify(bad.error.violations), /phrase/)
  })

  test('a correction is taken back, redacted, and stored once however often it is sent', async () => {
    const about = { reporter: 'dora', requestId: randomUUID() }
    const first = await feedback.phrase('twice', 'once', about)
    const second = await feedback.phrase('twice', 'once', about)
    assert.equal(second.feedbackId, first.feedbackId)
    await assert.rejects(feedback.phrase('other', 'once', about), { code: 'ALREADY_EXISTS', reason: 'REQUEST_ID_REUSED' })
    const retracted = await feedback.retract(first.feedbackId, { reason: 'a slip', wait: true })
    assert.ok(retracted.feedback.retractedAt instanceof Date)
    const redacted = await feedback.redact(first.feedbackId, { wait: true })
    assert.equal(redacted.feedback.reporter?.id ?? '', '')
    assert.equal((await feedback.get(first.feedbackId)).feedback.reason, '')
    assert.equal((await feedback.redactReporter('nobody')).remainingCount, 0)
  })

  test('settings, policies, the fleet and dead letters are read, and changed', async () => {
    const changed = await feedback.updateSettings({ queryRetention: 7_200_000 }, { reason: 'longer' })
    assert.equal(changed.queryRetention, 7_200_000)
    assert.equal((await feedback.settings()).queryRetention, 7_200_000)
    const policy = await review.policy('INVOCATION_PHRASE')
    assert.equal(policy.namespace, 'shop')
    assert.equal((await review.namespacePolicy()).namespace, 'shop')
    const nodes = await eventually('the node is listed', async () => {
      const found = []
      for await (const { info } of review.nodes()) found.push(info.id)
      return found.length > 0 && found
    })
    assert.deepEqual(nodes, ['search-1'])
    for await (const letter of feedback.deadLetters()) assert.fail(`unexpected: ${letter}`)
    assert.equal((await feedback.access()).authenticated, false)
    const { match } = await review.resolve({ phrase: 'set up a csa' })
    assert.equal(match.value, 'create_isda')
    const kinds = new Set()
    for await (const { key } of review.resources({ pageSize: 2 })) kinds.add(key.kind)
    assert.ok(kinds.has('INVOCATION_PHRASE') && kinds.has('SYNONYM'))
    const { revision } = await review.resource({ kind: 'INVOCATION_PHRASE', key: 'set up a csa' })
    assert.ok(revision > 0)
  })

  test('a watched queue tells of what is said', async () => {
    const watched = review.watchQueue()
    const first = (await watched.next()).value
    assert.deepEqual(first, { opened: {} })
    const said = await feedback.phrase('watched', 'seen', { reporter: 'ana', wait: true })
    const { candidateId } = said.feedback.outcome
    await review.approve(candidateId)
    const { change } = (await watched.next()).value
    assert.deepEqual([change.candidateId, change.previousStatus, change.status], [candidateId, 'PENDING', 'APPLIED'])
    await watched.return()
  })

  test('errors say every field with its bound, as the service does', async () => {
    const error = await feedback.phrase('', 'x'.repeat(300)).then(
      () => assert.fail('it was accepted'),
      reason => reason,
    )
    assert.ok(error instanceof EmendError && error instanceof Error)
    assert.equal(error.code, 'INVALID_ARGUMENT')
    assert.equal(error.violations.length, 2)
    assert.match(error.message, /phrase.*512/s)
    assert.match(error.message, /256/)
    assert.equal(error.mayBeStored, false)
    await assert.rejects(feedback.get(randomUUID()), { code: 'NOT_FOUND' })
    assert.throws(() => node.resolve('Not A Namespace', 'x'), /namespace/)
    assert.throws(() => node.resolve('shop', ' '), /phrase/)
    assert.throws(() => node.isBlocked('shop', 'not a host'), /host/)
    assert.throws(() => new Node('127.0.0.1:1', { id: 'no spaces' }), { code: 'INVALID_ARGUMENT' })
    assert.throws(() => new Feedback('http://[', {}), { code: 'INVALID_ARGUMENT' })
    assert.throws(() => new Feedback(pair.feedback, { tokenfile: 'x' }), /tokenfile: there is no such option/)
    assert.throws(() => new Node(pair.learning, { id: 'x', cachedir: 'x' }), /cachedir: there is no such option/)
    assert.throws(() => new Node(pair.learning, { id: 'x', bookmarkInterval: -1 }), /bookmarkInterval: must be more than 0 s/)
    await assert.rejects(feedback.call('emend.feedback.v1.FeedbackService/GetFeedback', { feedbackID: 'x' }), /no such field/)
  })

  test('a signal and a timeout end a call', async () => {
    const aborted = new AbortController()
    const reason = new Error('nobody waits')
    const call = node.waitFor(1_000_000_000, { signal: aborted.signal })
    aborted.abort(reason)
    await assert.rejects(call, reason)
    await assert.rejects(node.waitFor(1_000_000_000, { timeout: 20 }), { code: 'DEADLINE_EXCEEDED' })
    await assert.rejects(feedback.get(randomUUID(), { signal: AbortSignal.abort(reason) }), reason)
  })

  test('changes are told as they are applied', async () => {
    const changes = []
    const listener = change => changes.push(...change.changes)
    node.on('change', listener)
    await agreed(about => feedback.phrase('tell me', 'told', about))
    await eventually('it is told', () => changes.some(({ key }) => key === 'tell me'))
    node.off('change', listener)
    const { kind, namespace, removed } = changes.find(({ key }) => key === 'tell me')
    assert.deepEqual([kind, namespace, removed], ['INVOCATION_PHRASE', 'shop', false])
  })

  test('its status says how current it is', async () => {
    const status = node.status()
    assert.equal(status.connected, true)
    assert.equal(status.origin, 'STREAM')
    assert.ok(status.revision > 0 && status.age < 60_000)
    assert.match(status.installation, /^[0-9a-f-]{36}$/)
  })
})

test('every method of the contract has its own', async () => {
  // What a call answers, and any argument: it may be read, called and gone through.
  const anything = new Proxy(() => {}, {
    get: (_, name) => (name === 'then' ? undefined : name === Symbol.iterator ? [][Symbol.iterator] : anything),
    apply: () => anything,
  })
  const called = new Set()
  const note = method => {
    called.add(method)
    return anything
  }
  for (const Class of [Feedback, Review, Evidence, Outputs]) {
    const client = Object.assign(new Class('127.0.0.1:1'), { call: note, pages: note, stream: note, upload: note })
    const own = Object.getOwnPropertyNames(Class.prototype).filter(name => name !== 'constructor')
    await Promise.allSettled([...own, 'access'].map(async name => client[name](anything, anything, anything)))
    client.close()
  }
  // A recorder records what is searched.
  const others = ['RecordQuery', 'RecordInteraction'].map(name => `emend.feedback.v1.QueryService/${name}`)
  const missing = Object.keys(schema.methods).filter(method => !called.has(method) && !others.includes(method))
  assert.deepEqual(missing, [])
})

test('both module systems have the same classes', async () => {
  const imported = await import('@emend/client')
  assert.equal(imported.Node, Node)
  assert.deepEqual(Object.keys(imported).sort(), Object.keys(require('@emend/client')).sort())
})
