// Writes types/messages.d.ts and lib/schema.json from the protos, read from standard input as buf describes them:
//
//     buf build --output '-#format=json' | node clients/node/scripts/messages.mjs
//
// With --check it writes nothing, and fails if a file is out of date. `cargo xtask clients node` runs both.

import { readFileSync, writeFileSync } from 'node:fs'

/** What a backend or a reviewer's script calls; the others are for nodes and between the services. */
const SERVICES = [
  'AccessService',
  'CandidateService',
  'EvidenceService',
  'FeedbackService',
  'OutputService',
  'PolicyService',
  'ProfileService',
  'QueryService',
  'ResourceService',
  'SettingsService',
  'SubscriptionService',
]
/** Methods of them that are for nodes alone. */
const LEFT_OUT = ['Subscribe', 'ReportStatus']

/** The field numbers that descriptors use in the paths of comments. */
const PART = { message: 4, enum: 5, service: 6, field: 2, value: 2, method: 2 }

const SCALARS = {
  TYPE_BOOL: 'b',
  TYPE_BYTES: 'x',
  TYPE_DOUBLE: 'n',
  TYPE_FIXED64: 'u',
  TYPE_INT32: 'n',
  TYPE_INT64: 'n',
  TYPE_STRING: 's',
}
const WELL_KNOWN = {
  '.emend.common.v1.ItemStatus': 'i',
  '.google.protobuf.Any': 'a',
  '.google.protobuf.Duration': 'd',
  '.google.protobuf.FieldMask': 'f',
  '.google.protobuf.Timestamp': 't',
}
const TYPESCRIPT = {
  a: "{ '@type': string; [field: string]: unknown }",
  b: 'boolean',
  d: 'number',
  f: 'string[]',
  i: 'ItemError',
  n: 'number',
  s: 'string',
  t: 'Date',
  u: 'string',
  x: 'Uint8Array',
}
/** What a comment need not say of these, and a reader of a number or text must know. */
const UNITS = { d: ' In milliseconds.', f: ' Names of fields in camelCase.', u: ' Decimal digits.' }

const image = JSON.parse(readFileSync(0, 'utf8'))
const last = name => name.slice(name.lastIndexOf('.') + 1)

/** Everything by its name: that is unambiguous, which `cargo xtask docs` checks. */
const found = { messages: new Map(), enums: new Map(), methods: [] }
const camel = new Map()
const short = new Map()

for (const file of image.file.filter(file => file.package?.startsWith('emend.'))) {
  const comments = new Map()
  for (const { path, leadingComments } of file.sourceCodeInfo.location) {
    if (leadingComments) comments.set(path.join('.'), leadingComments.trim().split(/\s+/).join(' '))
  }
  file.messageType?.forEach((message, index) => {
    const fields = message.field ?? []
    for (const { name, jsonName } of fields) if (name !== jsonName) camel.set(name, jsonName)
    const comment = path => comments.get([PART.message, index, ...path].join('.'))
    found.messages.set(message.name, { message, fields, comment })
  })
  file.enumType?.forEach((kind, index) => {
    // buf's rules have each value begin with the name of its enum.
    const prefix = `${kind.name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '_').toUpperCase()}_`
    for (const { name } of kind.value) short.set(name, name.slice(prefix.length))
    found.enums.set(kind.name, { kind, prefix, comment: path => comments.get([PART.enum, index, ...path].join('.')) })
  })
  file.service?.forEach((service, index) => {
    if (!SERVICES.includes(service.name)) return
    service.method.forEach((method, place) => {
      if (LEFT_OUT.includes(method.name)) return
      const comment = comments.get([PART.service, index, PART.method, place].join('.'))
      found.methods.push({ name: `${file.package}.${service.name}/${method.name}`, method, comment })
    })
  })
}

/** A comment in the words of this package: fields in camelCase, values of enums without their prefix. */
function spoken(comment) {
  return comment
    .replace(/\b[a-z0-9]+(_[a-z0-9]+)+\b/g, word => camel.get(word) ?? word)
    .replace(/\b[A-Z0-9]+(_[A-Z0-9]+)+\b/g, word => short.get(word) ?? word)
    .replaceAll('*/', '*\u200b/')
}

function documented(comment, indent = '') {
  const lines = []
  let line = ''
  for (const word of spoken(comment).split(' ')) {
    if (line && line.length + word.length > 110 - indent.length) {
      lines.push(line)
      line = word
    } else {
      line = line ? `${line} ${word}` : word
    }
  }
  lines.push(line)
  if (lines.length === 1) return `${indent}/** ${line} */\n`
  return `${indent}/**\n${lines.map(text => `${indent} * ${text}\n`).join('')}${indent} */\n`
}

/** The kind of a field: a letter, or a message's or an enum's name; before it [] of a list, {} of a map, ? if it may be absent. */
function kindOf(field, message) {
  const entry = message.nestedType?.find(nested => nested.options?.mapEntry && field.typeName?.endsWith(`.${nested.name}`))
  if (entry) return `{}${kindOf(entry.field[1], message)}`
  const scalar = SCALARS[field.type] ?? WELL_KNOWN[field.typeName]
  const kind = scalar ?? last(field.typeName)
  if (field.label === 'LABEL_REPEATED') return `[]${kind}`
  const mayBeAbsent = field.type === 'TYPE_MESSAGE' || field.oneofIndex !== undefined
  return mayBeAbsent ? `?${kind}` : kind
}

function typescript(kind) {
  if (kind.startsWith('[]')) return `${typescript(kind.slice(2))}[]`
  if (kind.startsWith('{}')) return `Record<string, ${typescript(kind.slice(2))}>`
  if (kind.startsWith('?')) return typescript(kind.slice(1))
  return TYPESCRIPT[kind] ?? kind
}

const schema = { methods: {}, messages: {}, enums: {} }
const wanted = { messages: new Set(), enums: new Set() }

function want(name) {
  if (wanted.messages.has(name) || wanted.enums.has(name)) return
  if (found.enums.has(name)) {
    wanted.enums.add(name)
    return
  }
  wanted.messages.add(name)
  const { message, fields } = found.messages.get(name)
  for (const field of fields) {
    const kind = kindOf(field, message).replace(/^(\[\]|\{\}|\?)/, '')
    if (!(kind in TYPESCRIPT)) want(kind)
  }
}

let types = `// Written by scripts/messages.mjs from the protos in ../../proto. Do not edit.
// Times are dates, spans are milliseconds, 64-bit counts are numbers, values of enums have no prefix, and fields of an answer
// that hold nothing have their type's default; a field with a question mark may be absent.

/** Why one item of a batch failed: an \`EmendError\`. */
export interface ItemError extends Error {
  /** The gRPC code. */
  readonly code: string
  /** A stable reason in UPPER_SNAKE_CASE. */
  readonly reason: string | undefined
  /** Every field that is wrong. */
  readonly violations: readonly { field: string; description: string }[]
}
`
let methods = `
/** The calls that a service answers, by name. */
export interface Methods {
`
for (const { name, method, comment } of found.methods) {
  const [request, response] = [last(method.inputType), last(method.outputType)]
  want(request)
  want(response)
  const listed = found.messages.get(response).fields
  const paged = listed.some(({ name }) => name === 'next_page_token')
    ? listed.find(({ label }) => label === 'LABEL_REPEATED').jsonName
    : null
  const [stream, upload] = [method.serverStreaming && { stream: true }, method.clientStreaming && { upload: true }]
  schema.methods[name] = { request, response, ...(paged && { paged }), ...stream, ...upload }
  methods += `${documented(comment, '  ')}  '${name}': { request: ${request}; response: ${response} }\n`
}
methods += '}\n'

for (const [name, { message, fields, comment }] of [...found.messages].sort()) {
  if (!wanted.messages.has(name)) continue
  types += `\n${documented(comment([]))}export interface ${name} {\n`
  schema.messages[name] = {}
  fields.forEach((field, index) => {
    const kind = kindOf(field, message)
    schema.messages[name][field.jsonName] = kind
    const unit = UNITS[kind.replace(/^(\[\]|\{\}|\?)/, '')] ?? ''
    types += documented(`${comment([PART.field, index])}${unit}`, '  ')
    types += `  ${field.jsonName}${kind.startsWith('?') ? '?' : ''}: ${typescript(kind)}\n`
  })
  types += '}\n'
}
for (const [name, { kind, prefix, comment }] of [...found.enums].sort()) {
  if (!wanted.enums.has(name)) continue
  schema.enums[name] = prefix
  const values = kind.value.map(({ name: value }, index) => {
    return `${documented(comment([PART.value, index]), '  ')}  | '${value.slice(prefix.length)}'\n`
  })
  types += `\n${documented(comment([]))}export type ${name} =\n${values.join('')}`
}
types += methods

const rows = Object.entries(schema).map(([part, entries]) => {
  const lines = Object.entries(entries).map(([name, entry]) => `    ${JSON.stringify(name)}: ${JSON.stringify(entry)}`)
  return `  "${part}": {\n${lines.join(',\n')}\n  }`
})
const written = { 'types/messages.d.ts': types, 'lib/schema.json': `{\n${rows.join(',\n')}\n}\n` }
for (const [name, text] of Object.entries(written)) {
  const path = new URL(`../${name}`, import.meta.url)
  if (!process.argv.includes('--check')) {
    writeFileSync(path, text)
  } else if (readFileSync(path, 'utf8') !== text) {
    console.error(`clients/node/${name} is out of date: cargo xtask clients --write node`)
    process.exitCode = 1
  }
}
