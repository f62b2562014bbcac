'use strict'

const { Service } = require('./connection.js')
const { there } = require('./feedback.js')

/** @typedef {import('./connection').CallOptions} CallOptions */
/**
 * @template T
 * @typedef {import('./convert').Input<T>} Input
 */

const OUTPUTS = 'emend.learning.v1.OutputService'
const PROFILES = 'emend.learning.v1.ProfileService'

/** What an AI is asked with, how that gets better by ratings, and the profiles of users: asked of learning-svc. */
class Outputs extends Service {
  /**
   * The prompt of a target as it is sent to the AI. A node renders it without a call.
   * @param {string} target
   * @param {CallOptions & Omit<Input<import('./messages').RenderPromptRequest>, 'target'>} [options]
   */
  renderPrompt(target, options = {}) {
    const { signal: _, timeout: __, ...said } = options
    return this.call(`${OUTPUTS}/RenderPrompt`, { ...said, target }, options)
  }

  /**
   * The ratings of a target by version of its prompt.
   * @param {string} target
   * @param {CallOptions & { namespace?: string }} [options]
   */
  stats(target, options = {}) {
    return this.call(`${OUTPUTS}/GetOutputStats`, { namespace: options.namespace, target }, options)
  }

  /**
   * The same of every target, in the order of their names.
   * @param {Input<import('./messages').ListOutputStatsRequest>} [filter]
   * @param {CallOptions} [options]
   */
  allStats(filter = {}, options) {
    return this.pages(`${OUTPUTS}/ListOutputStats`, filter, options)
  }

  /**
   * All versions of a prompt, the newest first.
   * @param {string} target
   * @param {Omit<Input<import('./messages').ListPromptVersionsRequest>, 'target'>} [filter]
   * @param {CallOptions} [options]
   */
  promptVersions(target, filter = {}, options) {
    return this.pages(`${OUTPUTS}/ListPromptVersions`, { ...filter, target }, options)
  }

  /**
   * What a proposed version would change on inputs that were rated.
   * @param {string} candidateId
   * @param {CallOptions & { namespace?: string, inputs?: number }} [options]
   */
  previewImprovement(candidateId, options = {}) {
    const { namespace, inputs } = options
    return this.call(`${OUTPUTS}/PreviewImprovement`, { namespace, candidateId, inputs }, options)
  }

  /**
   * Generates a better prompt from ratings; it then awaits review.
   * @param {string} target
   * @param {CallOptions & { namespace?: string, label?: string, onBehalfOf?: string }} [options]
   */
  generateImprovement(target, options = {}) {
    const { namespace, label, onBehalfOf } = options
    return this.call(`${OUTPUTS}/GenerateImprovement`, { namespace, target, label, onBehalfOf }, options)
  }

  /**
   * Makes a version current that was approved before.
   * @param {string} target
   * @param {number} version
   * @param {CallOptions & { namespace?: string, label?: string, reason?: string, onBehalfOf?: string }} [options]
   */
  usePromptVersion(target, version, options = {}) {
    const { namespace, label, reason, onBehalfOf } = options
    return this.call(`${OUTPUTS}/UsePromptVersion`, { namespace, target, version, label, reason, onBehalfOf }, options)
  }

  /**
   * Rated outputs for training, the oldest first.
   * @param {string} target
   * @param {Omit<Input<import('./messages').ExportExamplesRequest>, 'target'>} [what]
   * @param {CallOptions} [options]
   */
  exportExamples(target, what = {}, options) {
    return this.stream(`${OUTPUTS}/ExportExamples`, { ...what, target }, options)
  }

  /**
   * What a user knows and wants to learn.
   * @param {string} userId
   * @param {CallOptions & { namespace?: string }} [options]
   */
  profile(userId, options = {}) {
    return this.call(`${PROFILES}/GetProfile`, { namespace: options.namespace, userId }, options)
  }

  /**
   * Changes a user's profile: the fields that are given, or those that `updateMask` names.
   * @param {string} userId
   * @param {Omit<Input<import('./messages').Profile>, 'userId'>} profile
   * @param {CallOptions & { updateMask?: string[] }} [options]
   */
  updateProfile(userId, profile, options = {}) {
    const changed = { ...profile, namespace: this.namespaceOr(profile.namespace), userId }
    return this.call(`${PROFILES}/UpdateProfile`, { profile: changed, updateMask: options.updateMask }, options)
  }

  /**
   * Records what a user did, to suggest entries of the profile.
   * @param {string} userId
   * @param {Omit<Input<import('./messages').RecordActivityRequest>, 'userId'>} activity
   * @param {CallOptions} [options]
   */
  recordActivity(userId, activity, options) {
    return this.call(`${PROFILES}/RecordActivity`, { ...activity, userId }, options)
  }

  /**
   * Has entries of a user's profile suggested.
   * @param {string} userId
   * @param {Omit<Input<import('./messages').GenerateSuggestionsRequest>, 'userId'>} [what]
   * @param {CallOptions} [options]
   */
  generateSuggestions(userId, what = {}, options) {
    return this.call(`${PROFILES}/GenerateSuggestions`, { ...what, userId }, options)
  }

  /**
   * What is suggested for a user's profile.
   * @param {string} userId
   * @param {Omit<Input<import('./messages').ListSuggestionsRequest>, 'userId'>} [filter]
   * @param {CallOptions} [options]
   */
  suggestions(userId, filter = {}, options) {
    return this.pages(`${PROFILES}/ListSuggestions`, { ...filter, userId }, options)
  }

  /**
   * The user takes a suggestion into the profile.
   * @param {string} userId
   * @param {string} candidateId
   * @param {CallOptions & { namespace?: string, etag?: string }} [options]
   */
  acceptSuggestion(userId, candidateId, options = {}) {
    const { namespace, etag } = options
    return this.call(`${PROFILES}/AcceptSuggestion`, { namespace, userId, candidateId, etag }, options)
  }

  /**
   * The user does not want a suggestion.
   * @param {string} userId
   * @param {string} candidateId
   * @param {CallOptions & { namespace?: string, etag?: string, reason?: string }} [options]
   */
  async rejectSuggestion(userId, candidateId, options = {}) {
    const { namespace, etag, reason } = options
    const request = { namespace, userId, candidateId, etag, reason }
    return there((await this.call(`${PROFILES}/RejectSuggestion`, request, options)).suggestion)
  }

  /**
   * Orders what a user may want to learn next.
   * @param {string} userId
   * @param {Omit<Input<import('./messages').RankLearningsRequest>, 'userId'>} what
   * @param {CallOptions} [options]
   */
  rankLearnings(userId, what, options) {
    return this.call(`${PROFILES}/RankLearnings`, { ...what, userId }, options)
  }
}

module.exports = { Outputs }
