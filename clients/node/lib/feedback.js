'use strict'

const { randomUUID } = require('node:crypto')

const { Service } = require('./connection.js')
const { EmendError, invalid } = require('./errors.js')

/** @typedef {import('./connection').CallOptions} CallOptions */
/** @typedef {import('./messages').Correction} Correction */
/** @typedef {import('./messages').Feedback} StoredFeedback */
/**
 * @template T
 * @typedef {import('./convert').Input<T>} Input
 */

/**
 * Who says it, why, and when to answer: what every correction may have.
 * @typedef {object} About
 * @property {string} [namespace] The search application. Default: the client's.
 * @property {string | Input<import('./messages').Reporter>} [reporter] The person or agent behind it: a stable id, or more.
 * @property {string} [queryId] The query that it is about.
 * @property {string} [reason] Why, in the reporter's words; decisions about domains and claims need one.
 * @property {Record<string, string>} [context] Anything that helps a reviewer.
 * @property {boolean} [onlyForReporter] Learn it for the reporter alone.
 * @property {boolean} [wait] Answer once it is evaluated, or after at most 2 s. Default: once it is stored.
 * @property {string} [requestId] Makes the call safe to repeat, also by another process. Default: a random one.
 */

/**
 * A correction as it was stored.
 * @typedef {object} Recorded
 * @property {string} feedbackId Its id.
 * @property {import('./messages').OutcomeState} state What has become of it: `APPLIED`, `PENDING`, `AWAITING_REVIEW` …
 * @property {string} reason Why, in UPPER_SNAKE_CASE; empty if the state says enough.
 * @property {string} message The same as a sentence for the reporter.
 * @property {number | undefined} appliedRevision The revision that applied it, for `node.waitFor`; undefined if none did.
 * @property {StoredFeedback} feedback All that was stored.
 */

/** @typedef {Recorded & { error: undefined } | { error: EmendError }} BatchResult A result of a batch. */

const FEEDBACK = 'emend.feedback.v1.FeedbackService'
const QUERIES = 'emend.feedback.v1.QueryService'
const SETTINGS = 'emend.feedback.v1.SettingsService'

/**
 * Submits corrections, and reads what was said: a client of feedback-svc.
 *
 * Every submission has a request id, so it is sent again while the service is unreachable or overloaded, and stored once.
 */
class Feedback extends Service {
  /**
   * The wrong verb was chosen for what the user said.
   * @param {string} input What the user said.
   * @param {About & CallOptions & { correct: string, insteadOf?: string }} correction `correct`: the right verb. `insteadOf`:
   * what the system chose.
   */
  verb(input, { correct, insteadOf, ...about }) {
    return this.submit({ verb: { originalInput: input, correctChoice: correct, systemChoice: insteadOf } }, about)
  }

  /**
   * A phrase means a verb.
   * @param {string} phrase
   * @param {string} verb
   * @param {About & CallOptions} [about]
   */
  phrase(phrase, verb, about) {
    return this.submit({ phraseMapping: { phrase, verb } }, about)
  }

  /**
   * The wrong entity was chosen for what the user said.
   * @param {string} input What the user said.
   * @param {About & CallOptions & { correct: string, insteadOf?: string }} correction `correct`: the right entity's id.
   * `insteadOf`: the one that the system chose.
   */
  entity(input, { correct, insteadOf, ...about }) {
    return this.submit({ entity: { originalInput: input, correctChoice: correct, systemChoice: insteadOf } }, about)
  }

  /**
   * Never offer this choice for this phrase.
   * @param {string} phrase
   * @param {string} choice A verb or an entity's id.
   * @param {About & CallOptions} [about]
   */
  prohibit(phrase, choice, about) {
    return this.submit({ prohibition: { phrase, forbiddenChoice: choice } }, about)
  }

  /**
   * Other terms stand for this one.
   * @param {string} term
   * @param {readonly string[]} equivalents 1 to 32 terms.
   * @param {About & CallOptions & { relation?: import('./messages').SynonymRelation }} [about] `relation`: EQUIVALENT (the
   * default), ONE_WAY or TYPO.
   */
  synonyms(term, equivalents, { relation, ...about } = {}) {
    return this.submit({ term: { term, equivalents, relation } }, about)
  }

  /**
   * The sources of a domain must not be shown.
   * @param {string} pattern `example.org` with all its subdomains, or `*.example.org` for these alone.
   * @param {About & CallOptions & { reason: string, taskId?: string }} about
   */
  blockDomain(pattern, { taskId, ...about }) {
    return this.submit({ domainBlock: { pattern, taskId } }, about)
  }

  /**
   * The sources of a domain are shown again.
   * @param {string} pattern As in `blockDomain`.
   * @param {About & CallOptions & { reason: string, taskId?: string, level?: import('./messages').TrustLevel }} about `level`:
   * how far they are trusted.
   */
  unblockDomain(pattern, { taskId, level, ...about }) {
    return this.submit({ domainUnblock: { pattern, taskId, level } }, about)
  }

  /**
   * What people decided about a domain no longer applies.
   * @param {string} pattern As in `blockDomain`.
   * @param {About & CallOptions & { reason: string, taskId?: string }} about
   */
  clearDomain(pattern, { taskId, ...about }) {
    return this.submit({ domainClearOverride: { pattern, taskId } }, about)
  }

  /**
   * The sources of a domain are trusted this far.
   * @param {string} pattern As in `blockDomain`.
   * @param {import('./messages').TrustLevel} level
   * @param {About & CallOptions & { reason: string, taskId?: string }} about
   */
  trustDomain(pattern, level, { taskId, ...about }) {
    return this.submit({ domainSetTrust: { pattern, level, taskId } }, about)
  }

  /**
   * A claim is hidden from results.
   * @param {string} claimId
   * @param {About & CallOptions & { reason: string, reasonCode?: string, taskId?: string }} about
   */
  rejectClaim(claimId, { reasonCode, taskId, ...about }) {
    return this.submit({ claimReject: { claimId, reasonCode, taskId } }, about)
  }

  /**
   * A claim is shown, whatever the backend reports against it.
   * @param {string} claimId
   * @param {About & CallOptions & { reason: string, taskId?: string }} about
   */
  restoreClaim(claimId, { taskId, ...about }) {
    return this.submit({ claimRestore: { claimId, taskId } }, about)
  }

  /**
   * An edge has this label.
   * @param {string} edgeId
   * @param {'SUPPORTS' | 'REFUTES' | 'NEUTRAL'} correctRelation
   * @param {About & CallOptions & { taskId?: string }} [about]
   */
  correctEdge(edgeId, correctRelation, { taskId, ...about } = {}) {
    return this.submit({ edgeCorrect: { edgeId, correctRelation, taskId } }, about)
  }

  /**
   * Queries of one type are searched so.
   * @param {string} queryType
   * @param {Input<import('./messages').SearchTuningValue>} tuning
   * @param {About & CallOptions} [about]
   */
  tuning(queryType, tuning, about) {
    return this.submit({ tuning: { queryType, tuning } }, about)
  }

  /**
   * What a search found is good (1), neither (0), or not what was wanted (-1).
   * @param {string} queryId The query, as its backend recorded it.
   * @param {1 | 0 | -1} value
   * @param {About & CallOptions} [about]
   */
  async rate(queryId, value, about) {
    const named = { 1: 'UP', 0: 'NEUTRAL', '-1': 'DOWN' }[/** @type {1 | 0 | '-1'} */ (value)]
    if (named === undefined) throw invalid('value', `must be 1, 0 or -1, is ${value}`)
    const searchRating = { value: /** @type {import('./messages').SearchRatingValue} */ (named) }
    return this.submit({ searchRating }, { ...about, queryId })
  }

  /**
   * What an AI made is good, or is not.
   * @param {Input<import('./messages').Rating>} rating
   * @param {About & CallOptions} [about]
   */
  rateOutput(rating, about) {
    return this.submit({ rating }, about)
  }

  /**
   * Submits a correction of any form.
   * @param {Input<Correction>} correction One of its fields.
   * @param {About & CallOptions} [about]
   * @returns {Promise<Recorded>}
   */
  async submit(correction, about = {}) {
    const request = this.#request(correction, about)
    const { feedback } = await this.call(`${FEEDBACK}/SubmitFeedback`, request, about)
    return recorded(feedback)
  }

  /**
   * Submits up to 100 corrections in one call. Each has its own result, in order: as stored, or with `error`.
   * @param {readonly { correction: Input<Correction>, about?: About }[]} corrections
   * @param {CallOptions & { wait?: boolean }} [options]
   * @returns {Promise<BatchResult[]>}
   */
  async submitAll(corrections, options = {}) {
    const requests = corrections.map(({ correction, about = {} }) => ({
      ...this.#request(correction, about),
      namespace: this.namespaceOr(about.namespace),
      wait: undefined,
    }))
    const wait = options.wait ? 'EVALUATED' : undefined
    const { results } = await this.call(`${FEEDBACK}/BatchSubmitFeedback`, { requests, wait }, options)
    return results.map(({ status, feedback }) => {
      if (feedback !== undefined) return { ...recorded(feedback), error: undefined }
      return { error: /** @type {EmendError} */ (there(status)) }
    })
  }

  /**
   * One feedback with what has become of it.
   * @param {string} feedbackId
   * @param {CallOptions & { namespace?: string }} [options]
   */
  async get(feedbackId, options = {}) {
    const request = { namespace: options.namespace, feedbackId }
    return recorded((await this.call(`${FEEDBACK}/GetFeedback`, request, options)).feedback)
  }

  /**
   * The feedback of a namespace, newest first.
   * @param {Input<import('./messages').ListFeedbackRequest>} [filter]
   * @param {CallOptions} [options]
   */
  list(filter = {}, options) {
    return this.pages(`${FEEDBACK}/ListFeedback`, filter, options)
  }

  /**
   * Takes a correction back. Safe to repeat.
   * @param {string} feedbackId
   * @param {CallOptions & { namespace?: string, reason?: string, wait?: boolean }} [options]
   */
  async retract(feedbackId, options = {}) {
    const { namespace, reason } = options
    const request = { namespace, feedbackId, reason, wait: waitOf(options) }
    return recorded((await this.call(`${FEEDBACK}/RetractFeedback`, request, options)).feedback)
  }

  /**
   * Sets the labels of a rating of a search answer.
   * @param {string} feedbackId
   * @param {{ setTags?: string[], clearTags?: string[], processed?: boolean }} labels
   * @param {CallOptions & { namespace?: string }} [options]
   */
  async label(feedbackId, labels, options = {}) {
    const request = { namespace: options.namespace, feedbackId, ...labels }
    return recorded((await this.call(`${FEEDBACK}/UpdateFeedbackLabels`, request, options)).feedback)
  }

  /**
   * Erases the personal parts of one feedback everywhere. Safe to repeat.
   * @param {string} feedbackId
   * @param {CallOptions & { namespace?: string, wait?: boolean }} [options]
   */
  async redact(feedbackId, options = {}) {
    const request = { namespace: options.namespace, feedbackId, wait: waitOf(options) }
    return recorded((await this.call(`${FEEDBACK}/RedactFeedback`, request, options)).feedback)
  }

  /**
   * Erases everything about one reporter. Call again to see what remains.
   * @param {string} reporterId
   * @param {CallOptions & { namespace?: string }} [options]
   */
  redactReporter(reporterId, options = {}) {
    return this.call(`${FEEDBACK}/RedactReporter`, { namespace: options.namespace, reporterId }, options)
  }

  /**
   * The events that learning-svc refused for good, oldest first.
   * @param {Input<import('./messages').ListDeadLettersRequest>} [filter]
   * @param {CallOptions} [options]
   */
  deadLetters(filter = {}, options) {
    return this.pages(`${FEEDBACK}/ListDeadLetters`, filter, options)
  }

  /**
   * Has dead letters delivered again.
   * @param {Input<import('./messages').RedriveDeadLettersRequest>} [which]
   * @param {CallOptions} [options]
   */
  redriveDeadLetters(which = {}, options) {
    return this.call(`${FEEDBACK}/RedriveDeadLetters`, which, options)
  }

  /**
   * The recorded queries of a namespace, newest first.
   * @param {Input<import('./messages').ListQueriesRequest>} [filter]
   * @param {CallOptions} [options]
   */
  queries(filter = {}, options) {
    return this.pages(`${QUERIES}/ListQueries`, filter, options)
  }

  /**
   * How many ratings are negative, and how many queries found nothing.
   * @param {Input<import('./messages').GetFeedbackStatsRequest>} [filter]
   * @param {CallOptions} [options]
   */
  stats(filter = {}, options) {
    return this.call(`${QUERIES}/GetFeedbackStats`, filter, options)
  }

  /**
   * The words that stand out in queries whose results were rated -1.
   * @param {Input<import('./messages').ListNegativeTermsRequest>} [filter]
   * @param {CallOptions} [options]
   */
  negativeTerms(filter = {}, options) {
    return this.call(`${QUERIES}/ListNegativeTerms`, filter, options)
  }

  /**
   * The ratings of search answers as text, in parts that are whole lines.
   * @param {Input<import('./messages').ExportFeedbackRequest>} what
   * @param {CallOptions} [options]
   */
  exportRatings(what, options) {
    return this.stream(`${QUERIES}/ExportFeedback`, what, options)
  }

  /**
   * What is done with the feedback of a namespace.
   * @param {CallOptions & { namespace?: string }} [options]
   */
  async settings(options = {}) {
    const { settings } = await this.call(`${SETTINGS}/GetSettings`, { namespace: options.namespace }, options)
    return there(settings)
  }

  /**
   * Changes settings: those that are given, or those that `updateMask` names.
   * @param {Input<import('./messages').Settings>} settings
   * @param {CallOptions & { updateMask?: string[], onBehalfOf?: string, reason?: string }} [options]
   */
  async updateSettings(settings, options = {}) {
    const { updateMask, onBehalfOf, reason } = options
    const named = { ...settings, namespace: this.namespaceOr(settings.namespace) }
    const request = { settings: named, updateMask, onBehalfOf, reason }
    return there((await this.call(`${SETTINGS}/UpdateSettings`, request, options)).settings)
  }

  /**
   * @param {Input<Correction>} correction
   * @param {About} about
   * @returns {Input<import('./messages').SubmitFeedbackRequest>}
   */
  #request(correction, about) {
    const { namespace, reporter, queryId, reason, context, onlyForReporter, requestId } = about
    return {
      requestId: requestId ?? randomUUID(),
      namespace,
      reporter: typeof reporter === 'string' ? { id: reporter } : reporter,
      queryId,
      reason,
      context,
      scope: onlyForReporter ? 'USER' : undefined,
      wait: waitOf(about),
      correction,
    }
  }
}

/**
 * @param {{ wait?: boolean }} options
 * @returns {'EVALUATED' | undefined}
 */
function waitOf({ wait }) {
  return wait ? 'EVALUATED' : undefined
}

/**
 * @param {StoredFeedback | undefined} stored
 * @returns {Recorded}
 */
function recorded(stored) {
  const feedback = there(stored)
  const { outcome } = feedback
  return {
    feedbackId: feedback.feedbackId,
    state: outcome?.state ?? 'UNSPECIFIED',
    reason: outcome?.reason ?? '',
    message: outcome?.message ?? '',
    appliedRevision: outcome?.state === 'APPLIED' ? outcome.revision : undefined,
    feedback,
  }
}

/**
 * @template T
 * @param {T | undefined} part
 * @returns {T}
 */
function there(part) {
  if (part === undefined) throw new EmendError('INTERNAL', 'INTERNAL: the answer of the service lacks a part')
  return part
}

module.exports = { Feedback, there }
