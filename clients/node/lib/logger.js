'use strict'

const { addon } = require('./addon.js')

/** @typedef {'error' | 'warn' | 'info' | 'debug'} LogLevel */
/**
 * One line of the log.
 * @typedef {object} LogEntry
 * @property {LogLevel} level How important it is.
 * @property {string} target The part that says it, for example `emend.client.subscriber`.
 * @property {string} message What happened, and behind it the fields: `reconnecting retry_in=3s`.
 */

/**
 * Gives what nodes and clients say of themselves to a logger. Without one it is dropped.
 * @param {((entry: LogEntry) => void) | undefined} logger One for the whole process: the newest counts. Undefined: none.
 * @param {LogLevel} [level] The least important that is told. Default: info.
 */
function setLogger(logger, level = 'info') {
  addon.setLogger(logger === undefined ? undefined : entry => logger(JSON.parse(entry)), level)
}

module.exports = { setLogger }
