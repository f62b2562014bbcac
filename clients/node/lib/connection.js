'use strict'

const { addon } = require('./addon.js')
const { fromWire, schema, toWire } = require('./convert.js')
const { EmendError, asError, invalid } = require('./errors.js')

/** How long a call may take, in milliseconds, where nobody says. */
const TIMEOUT = 10_000

/**
 * How a service is reached.
 * @typedef {object} ConnectionOptions
 * @property {string} [ca] A PEM file of the CAs by which the service is verified. Default: the system's.
 * @property {string} [certificate] A PEM file of the client's certificate, with `key`; read again for every connection.
 * @property {string} [key] A PEM file of its key.
 * @property {string} [token] A bearer token.
 * @property {string} [tokenFile] A file with a bearer token; read for every call, so it may be exchanged at any time.
 * @property {Record<string, string>} [headers] Headers that are sent with every call.
 * @property {boolean} [tls] Addresses without `http://` or `https://` are of TLS; so they are with `ca` or `certificate`.
 */

/**
 * How a service is called.
 * @typedef {ConnectionOptions & { namespace?: string, timeout?: number }} ServiceOptions
 * `namespace`: the search application of calls that name none. `timeout`: how many milliseconds a call may take with all its
 * attempts; 10,000 where neither this nor the call says.
 */

/**
 * How one call is made.
 * @typedef {object} CallOptions
 * @property {AbortSignal} [signal] Ends the call; its promise is rejected with the signal's reason.
 * @property {number} [timeout] How many milliseconds the call may take, with all attempts. Default: the client's.
 */

/** @typedef {import('./messages').Methods} Methods */
/**
 * @template T
 * @typedef {import('./convert').Input<T>} Input
 */

/**
 * Of messages of lists: what a page is a list of.
 * @template Response
 * @typedef {{ [Field in keyof Response]: Response[Field] extends (infer Item)[] ? Item : never }[keyof Response]} ItemOf
 */

/**
 * A list that is fetched page by page while it is read.
 * @template Item
 * @typedef {AsyncIterableIterator<Item>} Pages
 */

/** What a connection can be told. */
const CONNECTION = ['ca', 'certificate', 'headers', 'key', 'tls', 'token', 'tokenFile']
/** What a client can be told beside that. */
const SERVICE = ['namespace', 'timeout']

/**
 * Refuses options that there are not: one that is misspelt would else say nothing.
 * @param {object} options
 * @param {readonly string[]} own Those beside the connection's.
 */
function checkNames(options, own) {
  const unknown = Object.keys(options).find(name => !CONNECTION.includes(name) && !own.includes(name))
  if (unknown !== undefined) throw invalid(unknown, 'there is no such option')
}

/**
 * The settings of a connection, as the part in Rust takes them.
 * @param {string | readonly string[]} address `host:port`, or several: those of replicas.
 * @param {ConnectionOptions} options How it is reached.
 * @param {number} [timeout] How many milliseconds a call may take.
 */
function connectionSettings(address, options, timeout) {
  const { ca, certificate, key, token, tokenFile, headers, tls } = options
  const addresses = typeof address === 'string' ? address.split(',') : address
  return {
    addresses: addresses.map(part => part.trim()),
    ca,
    certificate,
    key,
    token,
    token_file: tokenFile,
    headers,
    tls,
    deadline: timeout === undefined ? undefined : timeout / 1000,
  }
}

/**
 * What the part in Rust answered, or the error that it told.
 * @param {string} told JSON.
 */
function answered(told) {
  const { ok, error } = JSON.parse(told)
  if (error === undefined) return ok
  throw asError(error)
}

/**
 * Runs what the part in Rust does until it is done, or the signal says that nobody waits any more.
 * @template T
 * @param {(id: number) => Promise<T>} begin Begins it, under an id by which it can be cancelled.
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<T>}
 */
async function cancellable(begin, signal) {
  signal?.throwIfAborted()
  const id = addon.nextId()
  if (signal === undefined) return begin(id)
  /** @type {() => void} */
  let abort = () => {}
  const aborted = new Promise((_, reject) => {
    abort = () => {
      addon.cancel(id)
      reject(signal.reason)
    }
  })
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await /** @type {Promise<T>} */ (Promise.race([begin(id), aborted]))
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** The calls of a service: what {@link Feedback}, {@link Review}, {@link Evidence} and {@link Outputs} have in common. */
class Service {
  #native
  #namespace
  #timeout

  /**
   * Connects with the first call, and again whenever the connection was lost.
   * @param {string | readonly string[]} address `host:port`; several, in an array or with commas, are those of replicas.
   * @param {ServiceOptions} [options]
   */
  constructor(address, options = {}) {
    this.#namespace = options.namespace
    this.#timeout = options.timeout ?? TIMEOUT
    checkNames(options, SERVICE)
    const settings = JSON.stringify(connectionSettings(address, options))
    this.#native = configured(() => new addon.Client(settings))
  }

  /** @internal */
  get native() {
    return this.#native
  }

  /**
   * Calls any method of the service by its name, for what has no method of its own here.
   * @template {keyof Methods} Method
   * @param {Method} method For example `emend.feedback.v1.FeedbackService/GetFeedback`.
   * @param {Input<Methods[Method]['request']>} request
   * @param {CallOptions} [options]
   * @returns {Promise<Methods[Method]['response']>}
   */
  async call(method, request, options = {}) {
    const { request: sent, response } = methodNamed(method)
    const wire = JSON.stringify(this.#complete(sent, request))
    const timeout = timeoutOf(options.timeout ?? this.#timeout)
    const told = await cancellable(id => this.#native.call(id, method, wire, timeout), options.signal)
    return fromWire(response, answered(told))
  }

  /**
   * Reads a list page by page. The calls are made as the items are read: at most one page waits.
   * @template {keyof Methods} Method
   * @param {Method} method
   * @param {Input<Methods[Method]['request']>} request
   * @param {CallOptions} [options] Each page has the whole timeout.
   * @returns {Pages<ItemOf<Methods[Method]['response']>>}
   */
  async *pages(method, request, options = {}) {
    const { paged } = methodNamed(method)
    if (paged === undefined) throw invalid('method', `${method} answers no pages`)
    let pageToken = /** @type {any} */ (request).pageToken ?? ''
    do {
      const page = /** @type {any} */ (await this.call(method, /** @type {any} */ ({ ...request, pageToken }), options))
      yield* page[paged]
      pageToken = page.nextPageToken
    } while (pageToken !== '')
  }

  /**
   * Reads what a method streams.
   * @template {keyof Methods} Method
   * @param {Method} method
   * @param {Input<Methods[Method]['request']>} request
   * @param {CallOptions} [options] The timeout is for its first message.
   * @returns {AsyncIterableIterator<Methods[Method]['response']>}
   */
  async *stream(method, request, options = {}) {
    const { request: sent, response, stream } = methodNamed(method)
    if (!stream) throw invalid('method', `${method} streams nothing`)
    const wire = JSON.stringify(this.#complete(sent, request))
    const timeout = options.timeout === undefined ? 0 : timeoutOf(options.timeout)
    const streaming = this.#native.stream(method, wire, timeout)
    try {
      for (;;) {
        const next = answered(await cancellable(id => streaming.next(id), options.signal))
        if (next === null) return
        yield fromWire(response, next)
      }
    } finally {
      streaming.close()
    }
  }

  /**
   * Calls a method that takes a stream of requests. They are taken as they are made, so there may be more than fit into memory; if
   * making one fails, the call is given up, and the service does nothing.
   * @template {keyof Methods} Method
   * @param {Method} method
   * @param {Iterable<Input<Methods[Method]['request']>> | AsyncIterable<Input<Methods[Method]['request']>>} requests
   * @param {CallOptions} [options] The timeout is for all of it. Default: ten minutes.
   * @returns {Promise<Methods[Method]['response']>}
   */
  async upload(method, requests, options = {}) {
    const { request: sent, response, upload } = methodNamed(method)
    if (!upload) throw invalid('method', `${method} takes one request`)
    const timeout = options.timeout === undefined ? 0 : timeoutOf(options.timeout)
    const uploading = answeredSync(() => this.#native.upload(method, timeout))
    try {
      for await (const request of requests) {
        const wire = JSON.stringify(toWire(sent, request))
        // The service may take no more: then its answer says why.
        if (!answered(await cancellable(id => uploading.send(id, wire), options.signal))) break
      }
      return fromWire(response, answered(await cancellable(id => uploading.finish(id), options.signal)))
    } finally {
      uploading.close()
    }
  }

  /**
   * Who the caller is, and what it may call.
   * @param {CallOptions & { namespace?: string }} [options]
   */
  access(options = {}) {
    return this.call('emend.access.v1.AccessService/GetAccess', { namespace: options.namespace }, options)
  }

  /** Ends all calls that are under way, and closes the connection. */
  close() {
    this.#native.close()
  }

  /** Lets `using` close it. */
  [Symbol.dispose]() {
    this.close()
  }

  /**
   * @param {string} name
   * @param {object} request
   */
  #complete(name, request) {
    const wire = toWire(name, request)
    if (wire.namespace === undefined && 'namespace' in (schema.messages[name] ?? {}) && this.#namespace !== undefined) {
      wire.namespace = this.#namespace
    }
    return wire
  }

  /**
   * The namespace of a call that names none.
   * @internal
   * @param {string | undefined} [named]
   */
  namespaceOr(named) {
    return named ?? this.#namespace ?? ''
  }
}

/** @param {string} method */
function methodNamed(method) {
  const found = schema.methods[method]
  if (found === undefined) throw invalid('method', `there is no ${method}`)
  return found
}

/** @param {number} timeout */
function timeoutOf(timeout) {
  if (!(timeout >= 1 && timeout <= 0xffff_ffff)) throw invalid('timeout', 'must be 1 ms or more')
  return Math.round(timeout)
}

/**
 * Calls what throws errors whose message is JSON.
 * @template T
 * @param {() => T} call
 * @returns {T}
 */
function answeredSync(call) {
  try {
    return call()
  } catch (error) {
    throw asThrown(error)
  }
}

/**
 * What the part in Rust threw, as this package throws it.
 * @param {unknown} error
 */
function asThrown(error) {
  const message = error instanceof Error ? error.message : ''
  return message.startsWith('{"error":') ? asError(JSON.parse(message).error) : error
}

/**
 * Makes something of settings. Errors name them as they are called here.
 * @template T
 * @param {() => T} make
 * @returns {T}
 */
function configured(make) {
  try {
    return answeredSync(make)
  } catch (error) {
    if (!(error instanceof EmendError)) throw error
    const camel = (/** @type {string} */ field) => field.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase())
    const message = error.violations.reduce((text, { field }) => text.replaceAll(field, camel(field)), error.message)
    const violations = error.violations.map(({ field, description }) => ({ field: camel(field), description }))
    throw new EmendError(error.code, message, { reason: error.reason, violations })
  }
}

module.exports = {
  SERVICE,
  Service,
  answered,
  answeredSync,
  asThrown,
  cancellable,
  checkNames,
  configured,
  connectionSettings,
  timeoutOf,
}
