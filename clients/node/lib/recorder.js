'use strict'

const { addon } = require('./addon.js')
const {
  SERVICE,
  answered,
  answeredSync,
  cancellable,
  checkNames,
  configured,
  connectionSettings,
} = require('./connection.js')
const { toWire } = require('./convert.js')

/**
 * What became of what was recorded.
 * @typedef {object} RecorderCounts
 * @property {number} sent Accepted by the service.
 * @property {number} dropped Lost: the queue was full, the recorder was closed, or the service had no room or did not answer.
 * @property {number} invalid Refused by the service as invalid.
 */

/**
 * Records what was searched and what users did with it. It never waits and fails no search: what is recorded takes a place in a
 * queue of 10,000, and is sent in the background.
 */
class QueryRecorder {
  #native

  /**
   * @param {string | readonly string[]} address feedback-svc: `host:port`, or several.
   * @param {import('./connection').ServiceOptions & { namespace: string }} options
   */
  constructor(address, options) {
    checkNames(options, SERVICE)
    const settings = JSON.stringify(connectionSettings(address, options, options.timeout))
    this.#native = configured(() => new addon.Recorder(settings, options.namespace))
  }

  /**
   * Records a query. Say `hitCount` also if nothing was found: without it and without results it is not known.
   * @param {import('./convert').Input<import('./messages').Query>} query
   * @returns {boolean} False: there was no room, or the recorder is closed; it is dropped and counted.
   */
  query(query) {
    const wire = JSON.stringify(toWire('Query', query))
    return answeredSync(() => this.#native.query(wire))
  }

  /**
   * Records what a user did with a result.
   * @param {import('./convert').Input<import('./messages').QueryInteraction>} interaction
   * @returns {boolean} As of `query`.
   */
  interaction(interaction) {
    const wire = JSON.stringify(toWire('QueryInteraction', interaction))
    return answeredSync(() => this.#native.interaction(wire))
  }

  /**
   * Waits until all that was recorded before is sent or dropped.
   * @param {{ signal?: AbortSignal }} [options]
   */
  async flush(options = {}) {
    answered(await cancellable(id => this.#native.flush(id), options.signal))
  }

  /**
   * What became of what was recorded.
   * @returns {RecorderCounts}
   */
  counts() {
    return answered(this.#native.counts())
  }

  /** Sends what is queued, for at most 2 s, and stops. */
  async close() {
    answered(await cancellable(id => this.#native.close(id), undefined))
  }

  /** Lets `await using` close it. */
  [Symbol.asyncDispose]() {
    return this.close()
  }
}

module.exports = { QueryRecorder }
