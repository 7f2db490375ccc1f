#!/usr/bin/env node
// Brings a fresh clone to the point where everything runs: dependencies, build, sandbox technology. Safe to repeat and
// quick when there is nothing to do. Plain JavaScript without dependencies: it runs before they are installed.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { missingPackages } from './installed-packages.mjs'
import { runToEnd } from './run-to-end.mjs'
import { withSetupLock } from './setup-lock.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const isQuiet = process.argv.includes('--quiet')
const say = (text) => process.stderr.write(`setup: ${text}\n`)
const note = (text) => isQuiet || say(text)

requireOwnClone()
await withSetupLock(join(root, '.setup-lock'), {
  work: main,
  onWait: (pid) => say(`waiting for the set-up that runs already (process ${pid})`),
})

async function main() {
  const ready = join(root, 'node_modules', '.corral-ready')
  rmSync(`${ready}.new`, { force: true })
  checkNode()
  if (!hasProgram('git')) fail('git is missing. Install it first, for example: apt-get install git')
  await installDependencies()
  // As old as what is built from here on: a file that changes meanwhile is newer, and the launcher comes again.
  writeFileSync(`${ready}.new`, '')
  installSystemPackages()
  await build()
  buildSupervisor()
  renameSync(`${ready}.new`, ready)
  if (!isQuiet) summarise()
}

/** In a clone that is shared set-up is its owner's, and comes again when a file or this user's Node is newer. */
function requireOwnClone() {
  try {
    accessSync(root, constants.W_OK)
  } catch (error) {
    fail(
      `${root} is not set up for its files and this Node as they are, and you may not write there (${error.code}). Have its owner run \`npm run setup\`, or make a clone of your own`,
    )
  }
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major < 20 || (major === 20 && minor < 19))
    fail(`Node ${process.versions.node} is too old: Corral needs 20.19 or newer`)
}

async function installDependencies() {
  const stampFile = join(root, 'node_modules', '.corral-dependencies')
  const wanted = hash([
    readFileSync(join(root, 'package-lock.json')),
    process.versions.modules,
    process.platform,
    process.arch,
  ])
  if (read(stampFile) === wanted && missingPackages(root).length === 0) return
  rmSync(stampFile, { force: true })
  say('installing dependencies (npm ci)')
  await run('npm', ['ci', '--no-audit', '--no-fund'])
  const missing = missingPackages(root)
  if (missing.length > 0)
    fail(
      `npm ci left out ${missing.length} packages, ${missing[0]} among them. Does another npm work in this clone? Try again`,
    )
  writeFileSync(stampFile, wanted)
}

async function build() {
  const stampFile = join(root, 'node_modules', '.corral-build')
  const wanted = hash(sourceFingerprint())
  if (read(stampFile) === wanted && existsSync(join(root, 'packages/cli/dist/bundle/corral.js'))) return
  say('building')
  await run('npm', ['run', '--silent', 'build'])
  writeFileSync(stampFile, wanted)
}

/** Names, sizes and times of everything the build reads: enough to notice a change, cheap enough to do every time. */
function sourceFingerprint() {
  const parts = []
  const visit = (path) => {
    const info = statSync(path, { throwIfNoEntry: false })
    if (!info) return
    if (!info.isDirectory()) return void parts.push(`${path}:${info.size}:${info.mtimeMs}`)
    for (const name of readdirSync(path).sort()) if (name !== 'dist' && name !== 'node_modules') visit(join(path, name))
  }
  for (const name of ['packages', 'scripts', 'package.json', 'tsconfig.base.json', 'tsconfig.json'])
    visit(join(root, name))
  return parts
}

function installSystemPackages() {
  if (process.platform !== 'linux') {
    note(`on ${process.platform} there is no bubblewrap: only the "process" tier is available, which is not a sandbox`)
    return
  }
  const missing = []
  if (!hasProgram('bwrap')) missing.push('bubblewrap')
  if (!['cc', 'gcc', 'clang'].some(hasProgram)) missing.push('gcc', 'libc6-dev')
  if (missing.length === 0) return
  // Another apt may hold the lock for minutes on a machine that has just started.
  const apt = 'apt-get -o DPkg::Lock::Timeout=300'
  const command = `${apt} install -y --no-install-recommends ${missing.join(' ')}`
  if (!existsSync('/etc/debian_version') || process.getuid() !== 0) {
    say(
      `missing: ${missing.join(', ')}. Going on without; for stronger isolation install them, on Debian or Ubuntu: sudo apt-get install ${missing.join(' ')}`,
    )
    return
  }
  say(`installing ${missing.join(', ')}`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const attempt = () =>
    spawnSync('sh', ['-c', command], { env, stdio: isQuiet ? 'ignore' : ['ignore', 'ignore', 'inherit'] }).status === 0
  if (attempt()) return
  spawnSync('sh', ['-c', `${apt} update -qq`], { env, stdio: 'ignore' })
  if (!attempt()) say(`could not install ${missing.join(', ')}; going on without`)
}

/** The small C program inside every sandbox. Without a compiler the Node one does the same job, slower. */
function buildSupervisor() {
  const source = join(root, 'packages/node/native')
  // Beside its package for tests and tools, and beside the bundle for the program.
  const built = join(root, 'packages/node/dist/native/corral-supervisor')
  const bundle = join(root, 'packages/cli/dist/bundle')
  const stampFile = `${built}.stamp`
  const wanted = hash(
    readdirSync(source)
      .sort()
      .map((name) => readFileSync(join(source, name))),
  )
  if (read(stampFile) !== wanted || !existsSync(built)) {
    mkdirSync(dirname(built), { recursive: true })
    const result = spawnSync(process.execPath, [join(source, 'build.mjs'), built], { encoding: 'utf8' })
    if (result.status !== 0) fail(`building the supervisor failed:\n${result.stdout}${result.stderr}`)
    if (!existsSync(built)) return note((result.stdout || 'no C compiler: the Node supervisor is used').trim())
    writeFileSync(stampFile, wanted)
  }
  ship(built, join(bundle, 'corral-supervisor'))
  const library = join(dirname(built), 'undumpable.node')
  if (existsSync(library)) ship(library, join(bundle, 'undumpable.node'))
}

function ship(built, shipped) {
  if (existsSync(shipped) && readFileSync(shipped).equals(readFileSync(built))) return
  rmSync(shipped, { force: true })
  copyFileSync(built, shipped)
  chmodSync(shipped, 0o755)
}

/** One line that says what this machine can do now. */
function summarise() {
  const works = ['tasks']
  const without = []
  const tell = (is, name, lack) => (is ? works.push(name) : without.push(lack))
  tell(hasProgram('bwrap'), 'isolated sandboxes', 'isolation (bubblewrap is missing)')
  tell(
    existsSync(join(root, 'packages/node/dist/native/corral-supervisor')),
    'the fast supervisor',
    'the fast supervisor (no C compiler)',
  )
  tell(hasProgram('kubectl'), 'kubectl', 'kubectl (not installed; only for looking at objects by hand)')
  tell(hasProgram('go'), 'suites against a real Kubernetes', 'suites against a real Kubernetes (Go is not installed)')
  say(`ready: ${works.join(', ')}${without.length > 0 ? `. Without: ${without.join('; ')}` : ''}`)
}

async function run(program, args) {
  const stdio = isQuiet ? ['ignore', 'ignore', 'inherit'] : ['ignore', 2, 2]
  const code = await runToEnd(program, args, { cwd: root, stdio })
  if (code !== 0) fail(`${program} ${args.join(' ')} failed`)
}

function hasProgram(name) {
  try {
    execFileSync('sh', ['-c', `command -v ${name}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function hash(parts) {
  const digest = createHash('sha256')
  for (const part of parts) digest.update(part).update('\0')
  return digest.digest('hex')
}

function read(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

function fail(text) {
  say(text)
  process.exit(1)
}
