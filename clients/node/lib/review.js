'use strict'

const { Service } = require('./connection.js')
const { there } = require('./feedback.js')

/** @typedef {import('./connection').CallOptions} CallOptions */
/** @typedef {import('./messages').Candidate} Candidate */
/** @typedef {import('./messages').ResourceKey} ResourceKey */
/**
 * @template T
 * @typedef {import('./convert').Input<T>} Input
 */
/**
 * Who decides, and why.
 * @typedef {CallOptions & { namespace?: string, etag?: string, reason?: string, onBehalfOf?: string }} Decision `etag`: only
 * the version that was seen.
 */

const CANDIDATES = 'emend.learning.v1.CandidateService'
const RESOURCES = 'emend.learning.v1.ResourceService'
const POLICIES = 'emend.learning.v1.PolicyService'

/** The review queue, what was learned, its log and the policies: what a reviewer's or an operator's script needs of learning-svc. */
class Review extends Service {
  /**
   * The candidates of a namespace, newest first unless another order is asked for.
   * @param {Input<import('./messages').ListCandidatesRequest>} [filter]
   * @param {CallOptions} [options]
   */
  candidates(filter = {}, options) {
    return this.pages(`${CANDIDATES}/ListCandidates`, filter, options)
  }

  /**
   * One candidate with its votes, rivals, feedback and history.
   * @param {string} candidateId
   * @param {CallOptions & { namespace?: string }} [options]
   */
  candidate(candidateId, options = {}) {
    return this.call(`${CANDIDATES}/GetCandidate`, { namespace: options.namespace, candidateId }, options)
  }

  /**
   * Applies a candidate, as proposed or edited.
   * @param {string} candidateId
   * @param {Decision & Pick<Input<import('./messages').ApproveCandidateRequest>, 'editedValue' | 'acceptRedacted'>} [decision]
   */
  approve(candidateId, decision = {}) {
    const { signal: _, timeout: __, ...said } = decision
    return this.call(`${CANDIDATES}/ApproveCandidate`, { ...said, candidateId }, decision)
  }

  /**
   * Rejects a candidate for good: votes do not reopen it.
   * @param {string} candidateId
   * @param {Decision} [decision]
   */
  reject(candidateId, decision = {}) {
    const { signal: _, timeout: __, ...said } = decision
    return this.call(`${CANDIDATES}/RejectCandidate`, { ...said, candidateId }, decision)
  }

  /**
   * Approves up to 100 candidates, each with its own result: the candidate, or an error.
   * @param {readonly Input<import('./messages').ApproveCandidateRequest>[]} requests
   * @param {CallOptions} [options]
   */
  async approveAll(requests, options) {
    const request = { requests: requests.map(one => ({ ...one, namespace: this.namespaceOr(one.namespace) })) }
    return (await this.call(`${CANDIDATES}/BatchApproveCandidates`, request, options)).results.map(resultOf)
  }

  /**
   * Rejects up to 100 candidates, each with its own result.
   * @param {readonly Input<import('./messages').RejectCandidateRequest>[]} requests
   * @param {CallOptions} [options]
   */
  async rejectAll(requests, options) {
    const request = { requests: requests.map(one => ({ ...one, namespace: this.namespaceOr(one.namespace) })) }
    return (await this.call(`${CANDIDATES}/BatchRejectCandidates`, request, options)).results.map(resultOf)
  }

  /**
   * Undoes one's own approval or rejection, within ten minutes.
   * @param {string} candidateId
   * @param {Omit<Decision, 'reason'>} [decision]
   */
  undo(candidateId, decision = {}) {
    const { signal: _, timeout: __, ...said } = decision
    return this.call(`${CANDIDATES}/UndoDecision`, { ...said, candidateId }, decision)
  }

  /**
   * Asks for a second opinion of a candidate that awaits review.
   * @param {string} candidateId
   * @param {string} comment What is asked.
   * @param {Omit<Decision, 'reason' | 'etag'> & { asked?: string }} [options] `asked`: of whom. Default: anybody else.
   */
  async askSecondOpinion(candidateId, comment, options = {}) {
    const { namespace, onBehalfOf, asked } = options
    const request = { namespace, onBehalfOf, asked, candidateId, comment }
    return there((await this.call(`${CANDIDATES}/AskSecondOpinion`, request, options)).comment)
  }

  /**
   * Comments on a candidate; from whoever was asked for a second opinion it is the answer.
   * @param {string} candidateId
   * @param {string} comment
   * @param {Omit<Decision, 'reason' | 'etag'>} [options]
   */
  async comment(candidateId, comment, options = {}) {
    const { namespace, onBehalfOf } = options
    const request = { namespace, onBehalfOf, candidateId, comment }
    return there((await this.call(`${CANDIDATES}/CommentOnCandidate`, request, options)).comment)
  }

  /**
   * What would be answered otherwise if a candidate were applied.
   * @param {string} candidateId
   * @param {CallOptions & Omit<Input<import('./messages').PreviewCandidateRequest>, 'candidateId'>} [options] `queries`: what was
   * searched lately.
   */
  async preview(candidateId, options = {}) {
    const { namespace, queries } = options
    const request = { namespace, queries, candidateId }
    return there((await this.call(`${CANDIDATES}/PreviewCandidate`, request, options)).changes)
  }

  /**
   * Shows others for 60 s that somebody has a candidate open.
   * @param {string} candidateId
   * @param {Omit<Decision, 'reason' | 'etag'>} [options]
   */
  lease(candidateId, options = {}) {
    const { namespace, onBehalfOf } = options
    return this.call(`${CANDIDATES}/AcquireReviewLease`, { namespace, onBehalfOf, candidateId }, options)
  }

  /**
   * Ends one's own lease.
   * @param {string} candidateId
   * @param {Omit<Decision, 'reason' | 'etag'>} [options]
   */
  async release(candidateId, options = {}) {
    const { namespace, onBehalfOf } = options
    await this.call(`${CANDIDATES}/ReleaseReviewLease`, { namespace, onBehalfOf, candidateId }, options)
  }

  /**
   * What changes in the queue from now on.
   * @param {Input<import('./messages').WatchQueueRequest>} [what]
   * @param {CallOptions} [options]
   */
  watchQueue(what = {}, options) {
    return this.stream(`${CANDIDATES}/WatchQueue`, what, options)
  }

  /**
   * Counts what was received and decided, by day and kind.
   * @param {Input<import('./messages').GetQueueStatsRequest>} [what]
   * @param {CallOptions} [options]
   */
  queueStats(what = {}, options) {
    return this.call(`${CANDIDATES}/GetQueueStats`, what, options)
  }

  /**
   * What was learned in a namespace, in the order of keys.
   * @param {Input<import('./messages').ListResourcesRequest>} [filter]
   * @param {CallOptions} [options]
   */
  resources(filter = {}, options) {
    return this.pages(`${RESOURCES}/ListResources`, filter, options)
  }

  /**
   * What was learned for one key.
   * @param {Input<ResourceKey>} key
   * @param {CallOptions & { minRevision?: number }} [options] `minRevision`: answer from a state at least this new.
   */
  async resource(key, options = {}) {
    const request = { key: this.#key(key), minRevision: options.minRevision }
    return there((await this.call(`${RESOURCES}/GetResource`, request, options)).resource)
  }

  /**
   * Sets a value as a person's decision.
   * @param {Input<ResourceKey>} key
   * @param {Input<import('./messages').ResourceValue>} value
   * @param {Omit<Decision, 'namespace'>} [decision]
   */
  put(key, value, decision = {}) {
    const { etag, reason, onBehalfOf } = decision
    return this.call(`${RESOURCES}/PutResource`, { key: this.#key(key), value, etag, reason, onBehalfOf }, decision)
  }

  /**
   * Imports many rows: phrase mappings, entities, prohibitions, synonyms. They are sent as they are made, so there may be more than fit
   * into memory; if making one fails, nothing is imported. A row without `line` has its place, from 1 on.
   * @param {Iterable<Input<import('./messages').ImportRow>> | AsyncIterable<Input<import('./messages').ImportRow>>} rows
   * @param {Input<import('./messages').ImportHeader> & CallOptions} [how] The timeout is for all of it. Default: ten minutes.
   */
  import(rows, how = {}) {
    const { signal, timeout, ...header } = how
    const first = { ...header, namespace: this.namespaceOr(header.namespace) }
    return this.upload(`${RESOURCES}/ImportResources`, importing(first, rows), { signal, timeout })
  }

  /**
   * Deletes a value.
   * @param {Input<ResourceKey>} key
   * @param {Omit<Decision, 'namespace'>} [decision]
   */
  delete(key, decision = {}) {
    const { etag, reason, onBehalfOf } = decision
    return this.call(`${RESOURCES}/DeleteResource`, { key: this.#key(key), etag, reason, onBehalfOf }, decision)
  }

  /**
   * The audit trail, newest first.
   * @param {Input<import('./messages').ListRevisionsRequest>} [filter]
   * @param {CallOptions} [options]
   */
  revisions(filter = {}, options) {
    return this.pages(`${RESOURCES}/ListRevisions`, filter, options)
  }

  /**
   * Restores what was there before a revision or an operation, as a new revision.
   * @param {Input<import('./messages').RevertRevisionRequest>} request
   * @param {CallOptions} [options]
   */
  revert(request, options) {
    return this.call(`${RESOURCES}/RevertRevision`, request, options)
  }

  /**
   * What a node answers for a phrase, asked of the service.
   * @param {Input<import('./messages').ResolveRequest>} request
   * @param {CallOptions} [options]
   */
  resolve(request, options) {
    return this.call(`${RESOURCES}/Resolve`, { kind: 'INVOCATION_PHRASE', ...request }, options)
  }

  /**
   * The policy of a kind in a namespace.
   * @param {import('./messages').ResourceKind} kind
   * @param {CallOptions & { namespace?: string }} [options]
   */
  async policy(kind, options = {}) {
    return there((await this.call(`${POLICIES}/GetPolicy`, { namespace: options.namespace, kind }, options)).policy)
  }

  /**
   * Changes a policy.
   * @param {Input<import('./messages').UpdatePolicyRequest>} request
   * @param {CallOptions} [options]
   */
  async updatePolicy(request, options) {
    const policy = { ...request.policy, namespace: this.namespaceOr(request.policy?.namespace) }
    return there((await this.call(`${POLICIES}/UpdatePolicy`, { ...request, policy }, options)).policy)
  }

  /**
   * What a policy would apply, and how answers would differ, if it were changed so.
   * @param {Input<import('./messages').PreviewPolicyRequest>} request
   * @param {CallOptions} [options]
   */
  previewPolicy(request, options) {
    const policy = { ...request.policy, namespace: this.namespaceOr(request.policy?.namespace) }
    return this.call(`${POLICIES}/PreviewPolicy`, { ...request, policy }, options)
  }

  /**
   * The policy of a whole namespace.
   * @param {CallOptions & { namespace?: string }} [options]
   */
  async namespacePolicy(options = {}) {
    const request = { namespace: options.namespace }
    return there((await this.call(`${POLICIES}/GetNamespacePolicy`, request, options)).policy)
  }

  /**
   * Changes the policy of a whole namespace.
   * @param {Input<import('./messages').UpdateNamespacePolicyRequest>} request
   * @param {CallOptions} [options]
   */
  async updateNamespacePolicy(request, options) {
    const policy = { ...request.policy, namespace: this.namespaceOr(request.policy?.namespace) }
    return there((await this.call(`${POLICIES}/UpdateNamespacePolicy`, { ...request, policy }, options)).policy)
  }

  /**
   * The fleet of nodes as last reported, by id.
   * @param {Input<import('./messages').ListNodesRequest>} [filter]
   * @param {CallOptions} [options]
   */
  nodes(filter = {}, options) {
    return this.pages('emend.learning.v1.SubscriptionService/ListNodes', filter, options)
  }

  /**
   * @param {Input<ResourceKey>} key
   * @returns {Input<ResourceKey>}
   */
  #key(key) {
    return { ...key, namespace: this.namespaceOr(key.namespace) }
  }
}

/** How many rows are sent together. */
const ROWS = 500

/**
 * The requests of an import.
 * @param {Input<import('./messages').ImportHeader>} header
 * @param {Iterable<Input<import('./messages').ImportRow>> | AsyncIterable<Input<import('./messages').ImportRow>>} rows
 * @returns {AsyncIterable<Input<import('./messages').ImportResourcesRequest>>}
 */
async function* importing(header, rows) {
  yield { header }
  let place = 0
  /** @type {Input<import('./messages').ImportRow>[]} */
  let together = []
  for await (const row of rows) {
    place += 1
    together.push({ line: place, ...row })
    if (together.length === ROWS) {
      yield { rows: { rows: together } }
      together = []
    }
  }
  if (together.length > 0) yield { rows: { rows: together } }
}

/** @param {{ status?: import('./messages').ItemError, candidate?: Candidate }} result */
function resultOf({ status, candidate }) {
  return candidate === undefined ? { error: /** @type {import('./errors').EmendError} */ (there(status)) } : { candidate, error: undefined }
}

module.exports = { Review }
