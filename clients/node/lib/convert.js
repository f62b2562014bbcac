'use strict'

const { asError, invalid } = require('./errors.js')
/** @type {{ methods: Record<string, { request: string, response: string, paged?: string, stream?: boolean, upload?: boolean }>, messages: Record<string, Record<string, string>>, enums: Record<string, string> }} */
const schema = require('./schema.json')

/**
 * What a request may be made of: fields that are left out have their default, and a time may be an ISO 8601 text.
 * @template T
 * @typedef {T extends Date ? Date | string
 *   : T extends Uint8Array ? Uint8Array
 *   : T extends (infer Element)[] ? readonly Input<Element>[]
 *   : T extends object ? { [Field in keyof T]?: Input<T[Field]> }
 *   : T} Input
 */

const SPAN = /^(-?)(\d+)(?:\.(\d{1,9}))?s$/

/** What an absent field is read as. */
const DEFAULTS = /** @type {Record<string, unknown>} */ ({ s: '', b: false, n: 0, u: '0' })

/**
 * A message as it is sent: protobuf's JSON.
 * @param {string} name The message's name.
 * @param {unknown} value What it is made of.
 * @param {string} path Where it stands, for errors.
 * @returns {Record<string, unknown>}
 */
function toWire(name, value, path = '') {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(path || name, `must be an object, is ${shown(value)}`)
  }
  const fields = schema.messages[name] ?? {}
  /** @type {Record<string, unknown>} */
  const wire = {}
  for (const [field, given] of Object.entries(value)) {
    const at = path ? `${path}.${field}` : field
    const kind = fields[field]
    if (kind === undefined) throw invalid(at, `${name} has no such field`)
    if (given !== undefined && given !== null) wire[field] = fieldToWire(kind, given, at)
  }
  return wire
}

/**
 * @param {string} kind
 * @param {unknown} value
 * @param {string} at
 * @returns {unknown}
 */
function fieldToWire(kind, value, at) {
  if (kind.startsWith('?')) return fieldToWire(kind.slice(1), value, at)
  if (kind.startsWith('[]')) {
    const rest = kind.slice(2)
    if (!Array.isArray(value)) throw invalid(at, `must be an array, is ${shown(value)}`)
    return value.map((element, index) => fieldToWire(rest, element, `${at}[${index}]`))
  }
  if (kind.startsWith('{}')) {
    if (typeof value !== 'object' || value === null) throw invalid(at, `must be an object, is ${shown(value)}`)
    const rest = kind.slice(2)
    const entries = Object.entries(value)
    return Object.fromEntries(entries.map(([key, element]) => [key, fieldToWire(rest, element, `${at}[${key}]`)]))
  }
  switch (kind) {
    case 's':
      if (typeof value !== 'string') throw invalid(at, `must be a string, is ${shown(value)}`)
      return value
    case 'b':
      if (typeof value !== 'boolean') throw invalid(at, `must be true or false, is ${shown(value)}`)
      return value
    case 'n':
      if (typeof value !== 'number') throw invalid(at, `must be a number, is ${shown(value)}`)
      // Protobuf's JSON has names for what JSON has no number for; the service says which it takes.
      return Number.isFinite(value) ? value : Number.isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity'
    case 'u':
      return String(value)
    case 't':
      return timeToWire(value, at)
    case 'd':
      if (typeof value !== 'number' || !Number.isFinite(value)) {
        throw invalid(at, `must be a number of milliseconds, is ${shown(value)}`)
      }
      return `${(value / 1000).toFixed(6)}s`
    case 'f':
      return /** @type {string[]} */ (value).join(',')
    case 'x':
      return Buffer.from(/** @type {Uint8Array} */ (value)).toString('base64')
    case 'a':
      return value
  }
  const prefix = schema.enums[kind]
  if (prefix === undefined) return toWire(kind, value, at)
  if (typeof value === 'number') return value
  if (typeof value !== 'string') throw invalid(at, `must be the name of a ${kind}, is ${shown(value)}`)
  return prefix + value
}

/**
 * @param {unknown} value
 * @param {string} at
 */
function timeToWire(value, at) {
  const time = value instanceof Date ? value : new Date(/** @type {string} */ (value))
  if (Number.isNaN(time.getTime())) throw invalid(at, 'must be a Date, or a time like 2026-01-31T12:00:00Z')
  // A text may have microseconds, which a Date has not.
  return typeof value === 'string' && /T.*Z$/.test(value) ? value : time.toISOString()
}

/**
 * An answer as programs read it: every field that holds nothing has its type's default; messages, and fields that may be
 * absent, are left out.
 * @param {string} name The message's name.
 * @param {any} wire Protobuf's JSON.
 * @returns {any}
 */
function fromWire(name, wire) {
  /** @type {Record<string, unknown>} */
  const value = {}
  for (const [field, kind] of Object.entries(schema.messages[name] ?? {})) {
    const given = wire[field]
    if (given !== undefined && given !== null) value[field] = fieldFromWire(kind, given)
    else if (!kind.startsWith('?')) value[field] = defaultOf(kind)
  }
  return value
}

/** @param {string} kind */
function defaultOf(kind) {
  if (kind.startsWith('[]') || kind === 'f') return []
  if (kind.startsWith('{}')) return {}
  if (kind === 'x') return new Uint8Array()
  return kind in DEFAULTS ? DEFAULTS[kind] : 'UNSPECIFIED'
}

/**
 * @param {string} kind
 * @param {any} wire
 * @returns {unknown}
 */
function fieldFromWire(kind, wire) {
  if (kind.startsWith('?')) return fieldFromWire(kind.slice(1), wire)
  if (kind.startsWith('[]')) {
    const rest = kind.slice(2)
    return wire.map((/** @type {unknown} */ element) => fieldFromWire(rest, element))
  }
  if (kind.startsWith('{}')) {
    const rest = kind.slice(2)
    return Object.fromEntries(Object.entries(wire).map(([key, element]) => [key, fieldFromWire(rest, element)]))
  }
  switch (kind) {
    case 's':
    case 'b':
    case 'a':
      return wire
    case 'i':
      return asError(wire)
    case 'n':
      return Number(wire)
    case 'u':
      return String(wire)
    case 't':
      return new Date(wire)
    case 'd':
      return milliseconds(wire)
    case 'f':
      return wire === '' ? [] : wire.split(',')
    case 'x':
      return new Uint8Array(Buffer.from(wire, 'base64'))
  }
  const prefix = schema.enums[kind]
  if (prefix === undefined) return fromWire(kind, wire)
  // A newer service may send a number that this version has no name for.
  return typeof wire === 'string' && wire.startsWith(prefix) ? wire.slice(prefix.length) : String(wire)
}

/** @param {string} span */
function milliseconds(span) {
  const [, sign, seconds, fraction = ''] = SPAN.exec(span) ?? ['', '', 'NaN']
  const value = Number(seconds) * 1000 + Number(`0.${fraction || '0'}`) * 1000
  return sign ? -value : value
}

/** @param {unknown} value */
function shown(value) {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value
}

module.exports = { fromWire, schema, toWire }
