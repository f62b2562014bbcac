'use strict'

/** @typedef {import('./connection').CallOptions} CallOptions */
/** @typedef {import('./connection').ConnectionOptions} ConnectionOptions */
/** @typedef {import('./connection').ServiceOptions} ServiceOptions */
/** @typedef {import('./errors').FieldViolation} FieldViolation */
/** @typedef {import('./errors').PreconditionViolation} PreconditionViolation */
/** @typedef {import('./feedback').About} About */
/** @typedef {import('./feedback').BatchResult} BatchResult */
/** @typedef {import('./feedback').Recorded} Recorded */
/** @typedef {import('./logger').LogEntry} LogEntry */
/** @typedef {import('./logger').LogLevel} LogLevel */
/** @typedef {import('./node').Change} Change */
/** @typedef {import('./node').ChangedResource} ChangedResource */
/** @typedef {import('./node').NodeEvents} NodeEvents */
/** @typedef {import('./node').NodeOptions} NodeOptions */
/** @typedef {import('./node').ResolveOptions} ResolveOptions */
/** @typedef {import('./node').Resolution} Resolution */
/** @typedef {import('./node').Status} Status */
/** @typedef {import('./recorder').RecorderCounts} RecorderCounts */

const { addon } = require('./addon.js')
const { EmendError } = require('./errors.js')
const { Evidence } = require('./evidence.js')
const { Feedback } = require('./feedback.js')
const { setLogger } = require('./logger.js')
const { Node } = require('./node.js')
const { Outputs } = require('./outputs.js')
const { QueryRecorder } = require('./recorder.js')
const { Review } = require('./review.js')

/**
 * The normal form of a phrase, by which it is known: phrases that are alike but for case, width, white space and characters that
 * nobody sees have the same.
 * @param {string} phrase
 */
function normalize(phrase) {
  return addon.normalize(phrase)
}

module.exports = { EmendError, Evidence, Feedback, Node, Outputs, QueryRecorder, Review, normalize, setLogger }
