'use strict'

/**
 * What a service, or this package, says is wrong with one field.
 * @typedef {object} FieldViolation
 * @property {string} field Which field, for example `correction.verb.correctChoice`.
 * @property {string} description What is wrong, with the bound.
 */

/**
 * A precondition that does not hold.
 * @typedef {object} PreconditionViolation
 * @property {string} kind Its sort, for example `NEWER_REVISION`.
 * @property {string} subject What it is about.
 * @property {string} description What does not hold.
 */

/**
 * What is known of an error beside its code and message.
 * @typedef {object} ErrorDetails
 * @property {string} [reason] A stable reason in UPPER_SNAKE_CASE.
 * @property {string} [explanation] One sentence.
 * @property {FieldViolation[]} [violations] Every field that is wrong.
 * @property {PreconditionViolation[]} [preconditions] Every precondition that does not hold.
 * @property {number} [retryAfter] How many milliseconds to wait before another attempt.
 * @property {string} [requestId] The request's id in the service's log.
 */

/** Why a call, or a setting, was refused. Its message names every field that is wrong, and the bound. */
class EmendError extends Error {
  /**
   * @param {string} code The gRPC code, for example `INVALID_ARGUMENT`.
   * @param {string} message What happened.
   * @param {ErrorDetails} [details] What else is known.
   */
  constructor(code, message, details = {}) {
    super(message)
    this.name = 'EmendError'
    /**
     * The gRPC code: `INVALID_ARGUMENT`, `NOT_FOUND`, `UNAVAILABLE` …
     * @readonly
     */
    this.code = code
    /**
     * A stable reason in UPPER_SNAKE_CASE, for example `REQUEST_ID_REUSED`; undefined if none was given.
     * @readonly
     */
    this.reason = details.reason
    /**
     * One sentence: the message without code, reason and fields.
     * @readonly
     */
    this.explanation = details.explanation ?? message
    /**
     * Every field that is wrong.
     * @readonly
     */
    this.violations = details.violations ?? []
    /**
     * Every precondition that does not hold, for example each revision that is in the way of a revert.
     * @readonly
     */
    this.preconditions = details.preconditions ?? []
    /**
     * How many milliseconds to wait before another attempt; undefined if the service did not say.
     * @readonly
     */
    this.retryAfter = details.retryAfter
    /**
     * The request's id in the service's log; undefined if it did not say.
     * @readonly
     */
    this.requestId = details.requestId
  }

  /** Whether what was to be changed may be changed all the same: there was no answer in time. */
  get mayBeStored() {
    return this.code === 'DEADLINE_EXCEEDED'
  }
}

/**
 * An error as the part in Rust tells it.
 * @param {any} error
 */
function asError(error) {
  const { retry_after: seconds, request_id: requestId } = error
  return new EmendError(error.code, error.text, {
    reason: error.reason ?? undefined,
    explanation: error.message,
    violations: error.violations,
    preconditions: error.preconditions,
    retryAfter: typeof seconds === 'number' ? seconds * 1000 : undefined,
    requestId: requestId ?? undefined,
  })
}

/**
 * An error for settings or arguments that this package refuses by itself.
 * @param {string} field Which one.
 * @param {string} description What is wrong, with the bound.
 */
function invalid(field, description) {
  return new EmendError('INVALID_ARGUMENT', `INVALID_ARGUMENT\n  ${field}: ${description}`, {
    violations: [{ field, description }],
  })
}

module.exports = { EmendError, asError, invalid }
