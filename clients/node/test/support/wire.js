// Messages of the stream, written and read field by field: a node is also sent what no service would send.
'use strict'

const VARINT = 0
const FIXED64 = 1
const BYTES = 2

/** A field of eight bytes, as hexadecimal. */
class Fixed64 {
  constructor(hex) {
    this.value = BigInt(`0x${hex}`)
  }
}

function varint(value) {
  const bytes = []
  let left = BigInt(value)
  while (left > 0x7fn) {
    bytes.push(Number(left & 0x7fn) | 0x80)
    left >>= 7n
  }
  return Buffer.from([...bytes, Number(left)])
}

/**
 * A message of these fields, each with its number. Zeros and empty texts are left out, as protobuf does.
 * @param {...[number, number | bigint | string | Buffer | Fixed64]} parts
 */
function encoded(...parts) {
  const written = []
  for (const [number, part] of parts) {
    const tag = kind => varint((number << 3) | kind)
    if (part instanceof Fixed64) {
      const bytes = Buffer.alloc(8)
      bytes.writeBigUInt64LE(part.value)
      written.push(tag(FIXED64), bytes)
    } else if (typeof part === 'string' || Buffer.isBuffer(part)) {
      const bytes = Buffer.from(part)
      if (bytes.length > 0 || Buffer.isBuffer(part)) written.push(tag(BYTES), varint(bytes.length), bytes)
    } else if (BigInt(part) !== 0n) {
      written.push(tag(VARINT), varint(part))
    }
  }
  return Buffer.concat(written)
}

/**
 * The fields of a message, each with its number: bytes, or a whole number.
 * @param {Buffer} message
 * @returns {Generator<[number, any]>}
 */
function* fields(message) {
  let position = 0
  const next = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[position++]
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (position < message.length) {
    const tag = Number(next())
    if ((tag & 7) === VARINT) {
      yield [tag >> 3, Number(next())]
      continue
    }
    const size = (tag & 7) === FIXED64 ? 8 : Number(next())
    const content = message.subarray(position, position + size)
    position += size
    yield [tag >> 3, (tag & 7) === FIXED64 ? content.readBigUInt64LE() : content]
  }
}

const text = bytes => (bytes ?? '').toString()

/** A cursor as the vectors write it. */
function readCursor(message) {
  const found = Object.fromEntries(fields(message))
  const filterHash = (found[3] ?? 0n).toString(16).padStart(16, '0')
  return { epoch: text(found[1]), revision: found[2] ?? 0, filter_hash: filterHash }
}

/** The same as a message. */
function cursor({ epoch, revision, filter_hash: filterHash }) {
  return encoded([1, epoch], [2, revision], [3, new Fixed64(filterHash)])
}

function readKey(message) {
  const found = Object.fromEntries(fields(message))
  return {
    namespace: text(found[1]),
    kind: found[2] ?? 0,
    key: text(found[3]),
    qualifier: text(found[4]),
    user_id: text(found[5]),
  }
}

/** A group's digest as a message. */
function digest({ namespace, kind, user_scoped: userScoped, count, hash }) {
  return encoded([1, namespace], [2, kind], [3, Number(userScoped)], [4, count], [5, Buffer.from(hash, 'hex')])
}

/** What a node reports, but for how long applying took. */
function readReport(message) {
  const report = { node_id: '', applied: null, rejected: [], rejected_count: 0 }
  for (const [number, value] of fields(message)) {
    if (number === 1) report.node_id = text(value)
    else if (number === 2) report.applied = readCursor(value)
    else if (number === 4) report.rejected_count = value
    else if (number === 3) {
      const found = Object.fromEntries(fields(value))
      report.rejected.push({ key: readKey(found[1]), revision: found[2] ?? 0, error: text(found[3]) })
    }
  }
  return report
}

module.exports = { Fixed64, cursor, digest, encoded, fields, readCursor, readReport }
