'use strict'

const { EventEmitter } = require('node:events')
const { hostname } = require('node:os')

const { addon } = require('./addon.js')
const {
  answered,
  answeredSync,
  asThrown,
  cancellable,
  checkNames,
  configured,
  connectionSettings,
  timeoutOf,
} = require('./connection.js')

/** @typedef {import('./messages').ResourceKind} ResourceKind */

/**
 * @typedef {object} OwnNodeOptions
 * @property {string} [id] Its name in the fleet, 1 to 128 characters of [A-Za-z0-9._:-]; another one for each process. Default:
 * the host's name and the process id.
 * @property {string} [cacheDir] A directory in which it keeps a copy of what it holds, to start from while learning-svc cannot
 * be reached. It is made if it is missing. The file is named after the node: no two nodes may share it. Default: no copy.
 * @property {readonly string[]} [namespaces] Only these search applications. Default: all that the caller may read.
 * @property {readonly ResourceKind[]} [kinds] Only these kinds. Default: all.
 * @property {boolean} [includeUserScoped] Also what was learned for single users. Default: false.
 * @property {string} [version] The program's version, shown in the fleet.
 * @property {string} [zone] Where it runs, shown in the fleet.
 * @property {Record<string, string>} [labels] More, shown in the fleet.
 * @property {boolean} [transient] It is no longer listed once it has gone. Default: false.
 * @property {number} [bookmarkInterval] Milliseconds between signs of life of the service, 1,000 to 3,600,000. A service that
 * sends nothing for three times as long, but at least 25 s, is left. Default: 9,000.
 * @property {number} [cacheInterval] Least milliseconds between writes of the copy. Default: 30,000.
 * @property {string} [acceptInstallation] The installation to accept although the copy is of another one.
 * @property {{ directory: string, namespace: string, label?: string }} [mirrorPrompts] Keeps the current prompts of a namespace as
 * files in a directory.
 * @property {string} [nearVectors] The directory of the vectors (Model2Vec's format) that near answers are given by, too, where a
 * policy names just these; all nodes need the same files. Default: by words alone.
 */
/** @typedef {import('./connection').ConnectionOptions & OwnNodeOptions} NodeOptions How a node is set up. */

/**
 * For what, for whom and among which a phrase is resolved.
 * @typedef {object} ResolveOptions
 * @property {'INVOCATION_PHRASE' | 'ENTITY_ALIAS'} [kind] Default: INVOCATION_PHRASE.
 * @property {string} [user] Whose own answer comes first.
 * @property {readonly (readonly [choice: string, score: number])[]} [candidates] What the backend would answer by itself.
 * @property {boolean} [near] Where nothing was learned for the phrase, answer by what was learned for similar ones, too. The first call
 * that asks has the models made, which takes seconds; `waitNear` waits for them.
 */

/**
 * A phrase that was learned.
 * @typedef {object} NearPhrase
 * @property {string} phrase In normal form.
 * @property {string} choice What it means.
 * @property {number} similarity How similar it is, 0 to 1.
 */
/**
 * What a phrase that nobody corrected most likely means.
 * @typedef {object} Near
 * @property {string} choice The choice, never a prohibited one.
 * @property {number} confidence How likely it is right, 0 to 1.
 * @property {NearPhrase[]} because The nearest phrases that were learned, the nearest first.
 * @property {string} model The model that answered: equal models give equal answers.
 */

/**
 * What a node answers for a phrase.
 * @typedef {object} Resolution
 * @property {string | undefined} choice What was learned: the verb or the entity's id; undefined if nothing was, or if it is prohibited.
 * @property {number} score 1 of what was learned, else 0.
 * @property {string[]} prohibited Choices that must never be offered for the phrase, sorted.
 * @property {boolean} choiceProhibited Something was learned, but it is prohibited.
 * @property {boolean} feedbackHint Ask the user: nothing was learned, and of the candidates that are not prohibited there is more
 * than one and the best scores below 0.9.
 * @property {'GLOBAL' | 'USER' | undefined} scope Whether what was learned is everybody's or the user's own.
 * @property {number} revision The revision that applied it; 0 if nothing was learned.
 * @property {number} stateRevision The revision of the state that answered.
 * @property {string} phrase The phrase in normal form.
 * @property {Near | undefined} near What was learned for similar phrases; undefined: nothing that is similar enough, or nobody asked for
 * it, or something was learned for the phrase itself.
 * @property {'NOT_ASKED' | 'READY' | 'WITHOUT_VECTORS' | 'FITTING' | 'OFF' | 'TOO_MANY'} nearStatus Whether near answers are given.
 */

/**
 * How current a node is.
 * @typedef {object} Status
 * @property {boolean} connected Whether the stream is open. A service that falls silent is noticed within 30 s.
 * @property {number} revision Everything at or below it is applied.
 * @property {'NOTHING' | 'DISK_COPY' | 'STREAM'} origin Where what it answers from came from.
 * @property {number | undefined} age How many milliseconds ago it was known to hold all there was; undefined if never.
 * @property {string | undefined} installation Whose resources it holds.
 * @property {string | undefined} otherInstallation Who answers instead, and was not accepted: nothing is updated any more.
 * @property {string | undefined} epoch The epoch of the log that the revision belongs to.
 * @property {boolean} inDoubt The last comparison with the service failed: a new snapshot is on its way.
 * @property {string | undefined} lastError Why the last stream ended, for people; undefined while one is open.
 */

/**
 * One key that changed.
 * @typedef {object} ChangedResource
 * @property {string} namespace The search application.
 * @property {ResourceKind} kind What it is about.
 * @property {string} key The key, in normal form.
 * @property {string} qualifier What else identifies it; empty for most kinds.
 * @property {string} userId Whose it is; empty: everybody's.
 * @property {number} revision The revision that changed it.
 * @property {boolean} removed It is gone.
 */
/**
 * What changed in what a node answers from.
 * @typedef {object} Change
 * @property {number} revision Everything at or below it is applied.
 * @property {boolean} snapshot Everything was replaced, and `changes` does not say what changed.
 * @property {ChangedResource[]} changes What changed, in the order of revisions.
 */
/** @typedef {{ reason: string }} Why In words for people. */
/**
 * The events of a node.
 * @typedef {object} NodeEvents
 * @property {[change: Change]} change What it answers from has changed.
 * @property {[]} connected A stream is open.
 * @property {[why: Why]} disconnected The stream is closed, and is opened again by itself.
 * @property {[why: Why]} inDoubt It holds something else than the service; a snapshot is on its way.
 * @property {[why: Why]} installationMismatch Another installation answers than the one whose resources it holds; `status` has both.
 * @property {[why: Why]} missed Some events were not told, because there were too many at once.
 */

/** What a node can be told beside how learning-svc is reached. */
const OPTIONS = [
  'acceptInstallation',
  'bookmarkInterval',
  'cacheDir',
  'cacheInterval',
  'id',
  'includeUserScoped',
  'kinds',
  'labels',
  'mirrorPrompts',
  'namespaces',
  'nearVectors',
  'transient',
  'version',
  'zone',
]

/** Whether near answers are given, by what the addon calls it. */
const NEAR_STATUSES = /** @type {Record<string, Resolution['nearStatus']>} */ ({
  not_asked: 'NOT_ASKED',
  ready: 'READY',
  without_vectors: 'WITHOUT_VECTORS',
  fitting: 'FITTING',
  off: 'OFF',
  too_many: 'TOO_MANY',
})

/** What its events are called here. */
const EVENTS = /** @type {Record<string, 'disconnected' | 'inDoubt' | 'installationMismatch' | 'missed'>} */ ({
  disconnected: 'disconnected',
  in_doubt: 'inDoubt',
  mismatch: 'installationMismatch',
  missed: 'missed',
})

/**
 * A node: a copy of what was learned, kept up to date in the background, from which look-ups are answered at once.
 *
 * It never keeps the process from ending. Close it all the same, so that its copy is written and its look-ups end.
 * @extends {EventEmitter<NodeEvents>}
 */
class Node extends EventEmitter {
  #native

  /**
   * Reads the copy on disk, if there is one, and connects in the background.
   * @param {string | readonly string[]} address learning-svc: `host:port`, or several in an array or with commas.
   * @param {NodeOptions} [options]
   */
  constructor(address, options = {}) {
    super()
    checkNames(options, OPTIONS)
    const { mirrorPrompts } = options
    const settings = {
      connection: connectionSettings(address, options),
      id: options.id ?? `${hostname()}-${process.pid}`.replace(/[^A-Za-z0-9._-]/g, '-').slice(-128),
      version: options.version,
      zone: options.zone,
      labels: options.labels,
      transient: options.transient,
      namespaces: options.namespaces,
      kinds: options.kinds,
      include_user_scoped: options.includeUserScoped,
      cache_dir: options.cacheDir,
      cache_interval: seconds(options.cacheInterval),
      bookmark_interval: seconds(options.bookmarkInterval),
      accept_installation: options.acceptInstallation,
      near_vectors: options.nearVectors,
      mirror_prompts: mirrorPrompts && { ...mirrorPrompts, label: mirrorPrompts.label ?? 'production' },
    }
    const told = (/** @type {string} */ event) => this.#tell(JSON.parse(event))
    this.#native = configured(() => new addon.Node(JSON.stringify(settings), told))
  }

  /**
   * What was learned for a phrase, and what must not be offered for it. It waits for nothing.
   * @param {string} namespace
   * @param {string} phrase What the user said.
   * @param {ResolveOptions} [options]
   * @returns {Resolution}
   */
  resolve(namespace, phrase, options) {
    const found = options === undefined ? this.#resolved(namespace, phrase) : this.#resolvedAmong(namespace, phrase, options)
    const choice = found[0] ?? undefined
    return {
      choice,
      score: choice === undefined ? 0 : 1,
      prohibited: found[5] ?? [],
      choiceProhibited: found[3],
      feedbackHint: found[4],
      scope: choice === undefined ? undefined : found[2] ? 'USER' : 'GLOBAL',
      revision: found[1],
      stateRevision: found[6],
      phrase: found[7],
      near: found[8] === null ? undefined : JSON.parse(found[8]),
      nearStatus: NEAR_STATUSES[found[9]],
    }
  }

  /**
   * A text with what else to search for where terms stand in it. Nothing is replaced.
   * @param {string} namespace
   * @param {string} text
   * @param {object} [options]
   * @param {'keyword' | 'embedding'} [options.mode] For a search by words (the default), or by meaning.
   * @param {string} [options.user] Whose own synonyms count, too.
   * @returns {{ text: string, groups: { start: number, end: number, alternatives: string[] }[] }} `text`: as one text to search
   * for. `groups`: where terms stand, from left to right; `start` and `end` are indices of the text that was given.
   */
  expand(namespace, text, options = {}) {
    const { mode = 'keyword', user } = options
    const expanded = answered(this.#native.expand(namespace, text, mode, user))
    return { text: expanded.text, groups: expanded.groups }
  }

  /**
   * What else to search for where a term stands: its representatives first.
   * @param {string} namespace
   * @param {string} term
   * @param {{ user?: string }} [options]
   * @returns {string[]}
   */
  synonyms(namespace, term, options = {}) {
    return answered(this.#native.synonyms(namespace, term, options.user))
  }

  /**
   * How queries of a type are searched: as an operator set it, else with the defaults.
   * @param {string} namespace
   * @param {string} queryType
   * @returns {Tuning}
   */
  tuning(namespace, queryType) {
    return new Tuning(answered(this.#native.tuning(namespace, queryType)))
  }

  /**
   * How far a source is trusted, and what decided it.
   * @param {string} namespace
   * @param {string} host
   * @returns {{ level: import('./messages').TrustLevel, weight: number, blocked: boolean, decidedBy: { pattern: string,
   * layer: string, decision: string, revision: number } | undefined }}
   */
  trust(namespace, host) {
    const { level, weight, blocked, pattern, layer, decision, revision } = answered(this.#native.trust(namespace, host))
    const decidedBy = pattern === '' ? undefined : { pattern, layer, decision: decision.toUpperCase(), revision }
    return { level: level.toUpperCase(), weight, blocked, decidedBy }
  }

  /**
   * Whether the sources of a host must not be shown.
   * @param {string} namespace
   * @param {string} host
   * @returns {boolean}
   */
  isBlocked(namespace, host) {
    return answeredSync(() => this.#native.isBlocked(namespace, host))
  }

  /**
   * Orders results by the trust in their sources: without those of blocked ones, the best first. A result has the `host` of its
   * source and a `score`, 0 or more, which comes back multiplied by the weight of the trust.
   * @template {{ host: string, score: number }} Result
   * @param {string} namespace
   * @param {readonly Result[]} results
   * @returns {Result[]}
   */
  rank(namespace, results) {
    const hosts = results.map(result => result.host)
    const scores = results.map(result => result.score)
    const [order, weighed] = answeredSync(() => this.#native.rank(namespace, hosts, scores))
    return order.map((/** @type {number} */ from, /** @type {number} */ to) => ({ ...results[from], score: weighed[to] }))
  }

  /**
   * What people decided about a claim; undefined: nothing.
   * @param {string} namespace
   * @param {string} claimId
   * @returns {{ decision: 'REJECTED' | 'RESTORED', reasonCode: string, revision: number } | undefined}
   */
  claimState(namespace, claimId) {
    const found = answered(this.#native.claimState(namespace, claimId))
    if (found === null) return undefined
    return { decision: found.state.toUpperCase(), reasonCode: found.reason_code, revision: found.revision }
  }

  /**
   * The label that a person gave an edge; undefined: the model's applies.
   * @param {string} namespace
   * @param {string} edgeId
   * @returns {{ relation: 'SUPPORTS' | 'REFUTES' | 'NEUTRAL', revision: number } | undefined}
   */
  edgeLabel(namespace, edgeId) {
    const found = answered(this.#native.edgeLabel(namespace, edgeId))
    return found === null ? undefined : { relation: found.state.toUpperCase(), revision: found.revision }
  }

  /**
   * The prompt of a target as it is sent to the AI: with variables filled in, the newest examples, and a user's profile.
   * @param {string} namespace
   * @param {string} target
   * @param {object} [options]
   * @param {Record<string, string>} [options.variables] The texts of variables.
   * @param {string} [options.user] Whose profile to add.
   * @param {string} [options.label] The label that is followed. Default: production.
   * @param {'EN' | 'JA'} [options.language] The language of headings. Default: that of the examples.
   * @returns {{ text: string, version: number, settings: Record<string, string> } | undefined} Undefined if no version is current.
   */
  renderPrompt(namespace, target, options = {}) {
    const { label, variables = {}, user, language } = options
    const rendered = this.#native.renderPrompt(namespace, target, label, variables, user, language?.toLowerCase())
    return answered(rendered) ?? undefined
  }

  /**
   * The version of a prompt that is current under a label; undefined: none is.
   * @param {string} namespace
   * @param {string} target
   * @param {{ label?: string }} [options] `label`: the default is production.
   * @returns {{ text: string, version: number, variables: Record<string, string | null>, settings: Record<string, string>,
   * revision: number } | undefined} `variables`: what stands there where a call says nothing; null: each call must say.
   */
  prompt(namespace, target, options = {}) {
    return answered(this.#native.prompt(namespace, target, options.label ?? 'production')) ?? undefined
  }

  /**
   * The newest rated examples for what an AI is asked.
   * @param {string} namespace
   * @param {string} target
   * @returns {{ language: 'EN' | 'JA', good: Example[], bad: Example[] }}
   */
  examples(namespace, target) {
    const { language, good, bad } = answered(this.#native.examples(namespace, target))
    return { language: language.toUpperCase(), good, bad }
  }

  /**
   * What a user knows and wants to learn. Only of a node with `includeUserScoped`.
   * @param {string} namespace
   * @param {string} user
   * @returns {{ experienceYears: number | undefined, specialties: string[], knownTechnologies: string[], learningGoals: string[] }}
   */
  profile(namespace, user) {
    const profile = answered(this.#native.profile(namespace, user))
    return {
      experienceYears: profile.experience_years ?? undefined,
      specialties: profile.specialties,
      knownTechnologies: profile.known_technologies,
      learningGoals: profile.learning_goals,
    }
  }

  /**
   * How current it is.
   * @returns {Status}
   */
  status() {
    const status = answered(this.#native.status())
    return {
      connected: status.connected,
      revision: status.revision,
      origin: status.origin.toUpperCase(),
      age: status.age_seconds === null ? undefined : status.age_seconds * 1000,
      installation: status.installation || undefined,
      otherInstallation: status.other_installation || undefined,
      epoch: status.epoch || undefined,
      inDoubt: status.in_doubt,
      lastError: status.last_error || undefined,
    }
  }

  /**
   * Waits until there is something to answer from: the copy on disk, or the first state from the service.
   * @param {{ timeout?: number, signal?: AbortSignal }} [options] `timeout`: milliseconds; then DEADLINE_EXCEEDED. Default: 10,000.
   */
  async ready(options = {}) {
    const timeout = timeoutOf(options.timeout ?? 10_000)
    answered(await cancellable(id => this.#native.ready(id, timeout), options.signal))
  }

  /**
   * Waits until everything at or below a revision is applied, to read what was just written.
   * @param {number} revision
   * @param {{ timeout?: number, signal?: AbortSignal }} [options] As of `ready`.
   */
  async waitFor(revision, options = {}) {
    const timeout = timeoutOf(options.timeout ?? 10_000)
    answered(await cancellable(id => this.#native.waitFor(id, revision, timeout), options.signal))
  }

  /**
   * Waits until near answers are by models of all that was learned. Has them made, if nobody asked for one before.
   * @param {{ timeout?: number, signal?: AbortSignal }} [options] As of `ready`. Default: 60,000.
   */
  async waitNear(options = {}) {
    const timeout = timeoutOf(options.timeout ?? 60_000)
    answered(await cancellable(id => this.#native.waitNear(id, timeout), options.signal))
  }

  /**
   * Accepts this installation in place of the one whose resources it holds, once one of its servers answers.
   * @param {string} installation
   */
  acceptInstallation(installation) {
    answeredSync(() => this.#native.acceptInstallation(installation))
  }

  /** Brings the copy on disk up to date and stops. What was learned until then is still answered. */
  async close() {
    answered(await cancellable(id => this.#native.close(id), undefined))
  }

  /** Lets `await using` close it. */
  [Symbol.asyncDispose]() {
    return this.close()
  }

  /**
   * Nothing but the call: this is the way of most look-ups.
   * @param {string} namespace
   * @param {string} phrase
   */
  #resolved(namespace, phrase) {
    try {
      return this.#native.resolve(namespace, phrase)
    } catch (error) {
      throw asThrown(error)
    }
  }

  /**
   * @param {string} namespace
   * @param {string} phrase
   * @param {ResolveOptions} options
   */
  #resolvedAmong(namespace, phrase, { kind, user, candidates = [], near = false }) {
    const choices = candidates.map(candidate => candidate[0])
    const scores = candidates.map(candidate => candidate[1])
    return answeredSync(() => this.#native.resolve(namespace, phrase, kind, user, choices, scores, near))
  }

  /** @param {any} event */
  #tell({ event, revision, changes, detail }) {
    if (event === 'updated' || event === 'snapshot') {
      this.emit('change', { revision, snapshot: event === 'snapshot', changes: changes.map(changed) })
    } else if (event === 'connected') {
      this.emit('connected')
    } else {
      this.emit(EVENTS[event], { reason: detail })
    }
  }
}

/**
 * @param {any} told
 * @returns {ChangedResource}
 */
function changed({ namespace, kind, key, qualifier, user_id: userId, revision, removed }) {
  return { namespace, kind: kind.toUpperCase(), key, qualifier, userId, revision, removed }
}

/** @typedef {{ input: string, output: string, corrected: string, issues: string[] }} Example A rated output. */
/**
 * One search of a plan.
 * @typedef {object} Attempt
 * @property {number} number Which one, from 1.
 * @property {string[]} namespaces Where to search; empty: where the backend does without being told.
 * @property {string[]} moreNamespaces Where to search beside that.
 * @property {number} minScore The score from which on results are given.
 * @property {number} topK How many results.
 * @property {boolean} expand Whether the text is embedded with its synonyms.
 */

/** How queries of one type are searched. */
class Tuning {
  #plan

  /**
   * @internal
   * @param {any} told
   */
  constructor(told) {
    /** How many results. @type {number} */
    this.topK = told.top_k
    /** The score from which on results are given. @type {number} */
    this.minScore = told.min_score
    /** From which score on a result is of which confidence, from the highest down. @type {{ name: string, minScore: number }[]} */
    this.confidences = told.confidences.map((/** @type {any} */ { name, min_score: minScore }) => ({ name, minScore }))
    /** What lists of results weigh when they are merged, by name. @type {Record<string, number>} */
    this.weights = told.weights
    /** Where to search; empty: where the backend does without being told. @type {string[]} */
    this.namespaces = told.namespaces
    /** What the user is told when nothing was found; empty: the backend's own text. @type {string} */
    this.suggestion = told.suggestion
    this.#plan = told.retry_plan
  }

  /**
   * The confidence of a result with this score; undefined below all of them.
   * @param {number} score
   */
  confidence(score) {
    return this.confidences.find(({ minScore }) => score >= minScore)?.name
  }

  /**
   * One search after another, until something is found.
   * @returns {Attempt[]}
   */
  retryPlan() {
    return this.#plan.map((/** @type {any} */ attempt) => ({
      number: attempt.number,
      namespaces: attempt.namespaces,
      moreNamespaces: attempt.more_namespaces,
      minScore: attempt.min_score,
      topK: attempt.top_k,
      expand: attempt.expand,
    }))
  }
}

/** @param {number | undefined} milliseconds */
function seconds(milliseconds) {
  return milliseconds === undefined ? undefined : milliseconds / 1000
}

module.exports = { Node }
