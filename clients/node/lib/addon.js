'use strict'

const { existsSync } = require('node:fs')
const { join } = require('node:path')

/**
 * The part in Rust. What is JSON in a string is `{"ok": …}` or `{"error": …}`. Errors that are thrown have the latter as message.
 * @typedef {object} Addon
 * @property {new (settings: string) => NativeClient} Client
 * @property {new (settings: string, tell: (event: string) => void) => NativeNode} Node
 * @property {new (settings: string, namespace: string) => NativeRecorder} Recorder
 * @property {() => number} nextId An id for something that can be cancelled.
 * @property {(id: number) => void} cancel
 * @property {(phrase: string) => string} normalize
 * @property {(tell: ((entry: string) => void) | undefined, level: string) => void} setLogger
 */
/**
 * @typedef {object} NativeClient
 * @property {(id: number, method: string, request: string, timeout: number) => Promise<string>} call
 * @property {(method: string, request: string, timeout: number) => NativeStream} stream
 * @property {(method: string, timeout: number) => NativeUpload} upload
 * @property {() => void} close
 */
/**
 * @typedef {object} NativeStream
 * @property {(id: number) => Promise<string>} next The next message; null at the end.
 * @property {() => void} close
 */
/**
 * @typedef {object} NativeUpload
 * @property {(id: number, request: string) => Promise<string>} send Whether it takes more.
 * @property {(id: number) => Promise<string>} finish
 * @property {() => void} close
 */
/**
 * What a phrase was resolved to: the choice, the revision that applied it, whether it is the user's own, whether something prohibited was
 * learned, whether to ask the user, the prohibited choices, the revision of the state, the phrase in normal form, the near
 * answer as JSON, whether near answers are given.
 * @typedef {[choice: string | null, revision: number, isUsers: boolean, isProhibited: boolean, hint: boolean,
 *   prohibited: string[] | null, stateRevision: number, phrase: string, near: string | null, nearStatus: string]} NativeResolution
 */
/** @typedef {string | undefined} Maybe */
/**
 * @typedef {object} NativeNode
 * @property {(namespace: string, phrase: string, kind?: string, user?: string, choices?: string[], scores?: number[],
 *   near?: boolean) => NativeResolution} resolve
 * @property {(namespace: string, text: string, mode: string, user: Maybe) => string} expand
 * @property {(namespace: string, term: string, user: Maybe) => string} synonyms
 * @property {(namespace: string, queryType: string) => string} tuning
 * @property {(namespace: string, host: string) => string} trust
 * @property {(namespace: string, host: string) => boolean} isBlocked
 * @property {(namespace: string, hosts: string[], scores: number[]) => [order: number[], scores: number[]]} rank
 * @property {(namespace: string, claimId: string) => string} claimState
 * @property {(namespace: string, edgeId: string) => string} edgeLabel
 * @property {(namespace: string, target: string, label: Maybe, variables: Record<string, string>, user: Maybe, language: Maybe) =>
 *   string} renderPrompt
 * @property {(namespace: string, target: string, label: string) => string} prompt
 * @property {(namespace: string, target: string) => string} examples
 * @property {(namespace: string, user: string) => string} profile
 * @property {() => string} status
 * @property {(id: number, timeout: number) => Promise<string>} ready
 * @property {(id: number, revision: number, timeout: number) => Promise<string>} waitFor
 * @property {(id: number, timeout: number) => Promise<string>} waitNear
 * @property {(installation: string) => void} acceptInstallation
 * @property {(id: number) => Promise<string>} close
 */
/**
 * @typedef {object} NativeRecorder
 * @property {(query: string) => boolean} query
 * @property {(interaction: string) => boolean} interaction
 * @property {(id: number) => Promise<string>} flush
 * @property {() => string} counts
 * @property {(id: number) => Promise<string>} close
 */

/**
 * Loads it. EMEND_NODE_ADDON names another file, for tests of this package.
 * @returns {Addon}
 */
function load() {
  const named = process.env.EMEND_NODE_ADDON
  const built = join(__dirname, '..', `emend.${process.platform}-${process.arch}.node`)
  const file = named ?? built
  if (!existsSync(file)) {
    throw new Error(
      `${file} is missing: @emend/client is not built for ${process.platform}-${process.arch}. ` +
        'With Rust installed, `npm rebuild @emend/client` builds it.',
    )
  }
  return require(file)
}

module.exports = { addon: load() }
