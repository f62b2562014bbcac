// A service that sends what it is told to: the messages of a recorded stream, or an error. It keeps what nodes say.
'use strict'

const { createServer } = require('node:http2')

const { fields, readCursor, readReport } = require('./wire.js')

const SUBSCRIBE = '/emend.learning.v1.SubscriptionService/Subscribe'
const REPORT = '/emend.learning.v1.SubscriptionService/ReportStatus'
const GRPC = { ':status': 200, 'content-type': 'application/grpc+proto' }

/** A message as gRPC frames it: not compressed, its length, itself. */
function framed(message) {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

/** The one message of a request. */
function read(stream) {
  return new Promise(resolve => {
    let bytes = Buffer.alloc(0)
    stream.on('data', chunk => {
      bytes = Buffer.concat([bytes, chunk])
      if (bytes.length >= 5 && bytes.length >= 5 + bytes.readUInt32BE(1)) resolve(bytes.subarray(5))
    })
  })
}

/**
 * Serves on a free port.
 * @param {object} told
 * @param {Buffer[][]} [told.streams] What each stream sends in turn; then it ends.
 * @param {Set<number>} [told.waits] The streams that do not end before `mayEnd()`.
 * @param {() => Iterable<Buffer> | AsyncIterable<Buffer>} [told.then] What is sent on every further stream, which stays open.
 * @param {{ code: number, message: string, details: string }} [told.error] How every other call is answered.
 */
async function serve({ streams = [], waits = new Set(), then = () => [], error }) {
  const server = createServer()
  const sessions = new Set()
  const cursors = []
  const reports = []
  const waiting = new Set()
  let mayEnd = false
  server.on('session', session => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
  })
  server.on('stream', async (stream, headers) => {
    stream.on('error', () => {})
    const path = headers[':path']
    if (path === SUBSCRIBE) {
      const { 5: cursor } = Object.fromEntries(fields(await read(stream)))
      const number = cursors.push(cursor === undefined ? null : readCursor(cursor)) - 1
      stream.respond(GRPC, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      for await (const message of streams[number] ?? then()) {
        if (stream.destroyed) return
        stream.write(framed(message))
      }
      if (waits.has(number) && !mayEnd) waiting.add(stream)
      else if (number < streams.length) stream.end()
    } else if (path === REPORT) {
      reports.push(readReport(await read(stream)))
      stream.respond(GRPC, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end(framed(Buffer.alloc(0)))
    } else {
      const details = error.details === '' ? {} : { 'grpc-status-details-bin': error.details.replace(/=+$/, '') }
      const status = { 'grpc-status': String(error.code), 'grpc-message': encodeURIComponent(error.message) }
      stream.respond({ ...GRPC, ...status, ...details }, { endStream: true })
    }
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${server.address().port}`,
    /** Of each stream that was opened the cursor of the node; null: it had none. */
    cursors,
    /** What was reported. */
    reports,
    mayEnd() {
      mayEnd = true
      for (const stream of waiting) stream.end()
    },
    close() {
      for (const session of sessions) session.destroy()
      return new Promise(resolve => server.close(resolve))
    },
  }
}

module.exports = { serve }
