// Builds the part in Rust, where it does not come with the package: from a checkout, with cargo.
'use strict'

const { spawnSync } = require('node:child_process')
const { copyFileSync, existsSync, renameSync } = require('node:fs')
const { join, resolve } = require('node:path')

const here = resolve(__dirname, '..')
const checkout = resolve(here, '..', '..')
const addon = join(here, `emend.${process.platform}-${process.arch}.node`)

/** What cargo calls the library. */
const LIBRARY = { darwin: 'libemend_node.dylib', win32: 'emend_node.dll' }[process.platform] ?? 'libemend_node.so'

function main() {
  if (!existsSync(join(here, 'Cargo.toml'))) {
    if (existsSync(addon)) return
    fail(`this package has no part in Rust for ${process.platform}-${process.arch}; install it from a checkout`)
  }
  const profile = process.env.EMEND_NODE_PROFILE ?? 'release'
  const arguments_ = ['build', '--locked', '--package', 'emend-node', '--profile', profile, '--message-format=json']
  const built = spawnSync('cargo', arguments_, {
    cwd: checkout,
    encoding: 'utf8',
    maxBuffer: 1 << 30,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (built.error) fail('cargo is missing: install Rust, see https://rustup.rs')
  if (built.status !== 0) fail('the part in Rust was not built')
  const library = libraryOf(built.stdout)
  if (library === undefined) fail(`cargo built no ${LIBRARY}`)
  // A process that has the old one loaded keeps it.
  copyFileSync(library, `${addon}.new`)
  renameSync(`${addon}.new`, addon)
}

/** Where cargo put the library, as its messages say: CARGO_TARGET_DIR and a cargo configuration may move it. */
function libraryOf(messages) {
  const files = messages
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line))
    .flatMap(message => message.filenames ?? [])
  return files.find(file => file.endsWith(LIBRARY))
}

function fail(message) {
  console.error(`@emend/client: ${message}`)
  process.exit(1)
}

main()
