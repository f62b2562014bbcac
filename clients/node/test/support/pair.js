// A real pair of services, which tests start, kill, stop and start again.
'use strict'

const { spawn } = require('node:child_process')
const { mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { createInterface } = require('node:readline')
const { setTimeout: pause } = require('node:timers/promises')

const PROGRAM = process.env.EMEND_TEST_EMEND ?? join(__dirname, '../../../../target/debug/emend')
const READY = /^emend: ready feedback=(\S+) learning=(\S+)/

class Pair {
  #child
  #arguments
  #directory

  /**
   * Starts one, with these further arguments.
   * @param {...string} further
   * @returns {Promise<Pair>}
   */
  static async start(...further) {
    const pair = new Pair()
    pair.#directory = mkdtempSync(join(tmpdir(), 'emend-node-'))
    pair.#arguments = further
    await pair.#run('127.0.0.1:0', '127.0.0.1:0')
    return pair
  }

  /** Starts it again where it was, with what it had stored. */
  async again() {
    await this.#run(this.feedback, this.learning)
  }

  /** Ends it as a machine does that loses its power. */
  async kill() {
    await this.#end('SIGKILL')
  }

  /** Lets it fall silent: connections stay open, and nobody answers. */
  stall() {
    this.#child.kill('SIGSTOP')
  }

  /** Ends it, and removes what it stored. */
  async stop() {
    await this.#end('SIGKILL')
    rmSync(this.#directory, { recursive: true })
  }

  async #run(feedback, learning) {
    const settings = ['--feedback-addr', feedback, '--learning-addr', learning, '--console-addr', 'off']
    const environment = Object.entries(process.env).filter(([name]) => !name.startsWith('EMEND_'))
    const data = ['--data-dir', join(this.#directory, 'data')]
    this.#child = spawn(PROGRAM, ['up', ...data, ...settings, ...this.#arguments], {
      env: Object.fromEntries(environment),
      stdio: ['ignore', 'pipe', process.env.EMEND_TEST_LOG ? 'inherit' : 'ignore'],
    })
    const failed = new Promise((_, reject) => {
      this.#child.once('error', reject)
      this.#child.once('exit', code => reject(new Error(`emend up ended with ${code}`)))
    })
    failed.catch(() => {})
    for await (const line of createInterface({ input: this.#child.stdout })) {
      const ready = READY.exec(line)
      if (ready) {
        ;[, this.feedback, this.learning] = ready
        return
      }
    }
    await failed
  }

  async #end(signal) {
    const child = this.#child
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise(resolve => child.once('exit', resolve))
    child.kill(signal)
    await ended
  }
}

/**
 * Waits for a condition, for at most so many milliseconds.
 * @param {string} what
 * @param {() => unknown} holds
 * @param {number} [within]
 */
async function eventually(what, holds, within = 10_000) {
  const end = performance.now() + within
  for (;;) {
    const found = await holds()
    if (found) return found
    if (performance.now() > end) throw new Error(`not within ${within} ms: ${what}`)
    await pause(20)
  }
}

/** A directory that is removed at the end of a test. */
function directory(t) {
  const path = mkdtempSync(join(tmpdir(), 'emend-node-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

module.exports = { PROGRAM, Pair, directory, eventually }
