import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { CliError } from '../cli-error.js'
import { shellQuote } from '../output/shell-quote.js'

/** Names of everything the platform keeps. Nothing is written outside. */
export interface DataDirectory {
  readonly path: string
  readonly api: string
  readonly tls: string
  readonly kubeconfig: string
  readonly readyFile: string
  readonly tasks: string
  readonly mirrors: string
  /** The repository of the demo task. */
  readonly demo: string
  readonly agents: string
  /** Toolchains that sandboxes see beside those of the machine. */
  readonly toolchains: string
  readonly runtime: string
  readonly secrets: string
  /** The clusters tasks may run in beside the platform's own. */
  readonly providers: string
  /** The named endpoints of models. */
  readonly endpoints: string
  /** Prices of models that differ from what this release knows; need not exist. */
  readonly prices: string
  readonly git: string
  /** What environment files of repositories may open. */
  readonly environmentGrants: string
  /** The package mirror's cache and socket. */
  readonly packages: string
  /** Root file systems for sandboxes. */
  readonly images: string
  /** What environments have built in a cluster, as archives. */
  readonly environments: string
  /** What was chosen under Settings; need not exist. */
  readonly settings: string
  /** Exists where a platform that was to end itself when idle shall go on: `corral up -d` asked for one that stays. */
  readonly stay: string
}

const schemaVersion = 1
/** Its presence marks a data directory. */
const schemaFile = 'schema-version'

export function defaultDataDirectory(env: NodeJS.ProcessEnv): string {
  if (env.CORRAL_DATA_DIR) return resolve(env.CORRAL_DATA_DIR)
  return process.getuid?.() === 0 ? '/var/lib/corral' : join(env.HOME ?? homedir(), '.corral')
}

/** The directory a command was given with --data-dir or CORRAL_DATA_DIR, else the usual one. */
export function dataDirectoryOf(
  options: { dataDir?: string | undefined },
  env: NodeJS.ProcessEnv = process.env,
): DataDirectory {
  return dataDirectoryAt(options.dataDir ?? defaultDataDirectory(env))
}

/** Absolute, whatever was given: parts of it are bound into sandboxes, whose working directory is another. */
export function dataDirectoryAt(given: string): DataDirectory {
  const path = resolve(given)
  const at = (name: string): string => join(path, name)
  return {
    path,
    api: at('api'),
    tls: at('tls'),
    kubeconfig: at('kubeconfig'),
    readyFile: at('ready.json'),
    tasks: at('tasks'),
    mirrors: at('mirrors'),
    demo: at('demo'),
    agents: at('agents'),
    toolchains: at('toolchains'),
    runtime: at('runtime'),
    secrets: at('secrets'),
    providers: at('providers.json'),
    endpoints: at('endpoints.json'),
    prices: at('prices.json'),
    git: at('git'),
    packages: at('packages'),
    images: at('images'),
    environmentGrants: at('environment-grants.json'),
    environments: at('environments'),
    settings: at('settings.json'),
    stay: at('stay'),
  }
}

/**
 * Creates the directory: others may pass through it (sandboxes run as other users and have parts of it bound in) but
 * not list it, and what is secret lies in directories of its own. Refuses one that a newer version has written.
 */
export function prepareDataDirectory(directory: DataDirectory): void {
  makeDataDirectory(directory.path)
  for (const path of [
    directory.api,
    directory.tls,
    directory.tasks,
    directory.mirrors,
    directory.secrets,
    directory.git,
  ])
    mkdirSync(path, { recursive: true, mode: 0o700 })
  for (const path of [directory.agents, directory.toolchains, directory.runtime])
    mkdirSync(path, { recursive: true, mode: 0o755 })
  const file = join(directory.path, schemaFile)
  const found = existsSync(file) ? Number(readFileSync(file, 'utf8')) : schemaVersion
  if (found > schemaVersion)
    throw new CliError(`${directory.path} was written by a newer Corral (schema ${found})`, {
      hint: 'Use that version, or start with another --data-dir.',
    })
  writeAtomically(file, `${schemaVersion}\n`, 0o644)
  checkReachable(directory)
}

/** Makes the directory itself; one that cannot be used is a `CliError` with exit code 3. */
export function makeDataDirectory(path: string, env: NodeJS.ProcessEnv = process.env): void {
  const problem = unusablePath(path) ?? otherUse(path)
  if (problem)
    throw new CliError(`${path} cannot be used as the data directory: ${problem.is}`, {
      exitCode: 3,
      hint: problem.hint,
    })
  try {
    makeWithParents(path)
    refuseForeign(path, env)
    chmodSync(path, 0o711)
  } catch (cause) {
    if (cause instanceof CliError) throw cause
    const { code } = cause as NodeJS.ErrnoException
    const words = failureWords[code ?? '']
    throw new CliError(
      `${path} cannot be used as the data directory (${code ?? String(cause)}${words ? `: ${words}` : ''})`,
      { exitCode: 3, hint: 'Name a directory you may write to with --data-dir or CORRAL_DATA_DIR.', cause },
    )
  }
}

const failureWords: Readonly<Record<string, string>> = {
  EACCES: 'you may not write there',
  EEXIST: 'there is something that is no directory',
  ENAMETOOLONG: 'the name is too long',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a file is in its way',
  EPERM: 'it belongs to another user',
  EROFS: 'the file system is read-only',
}

/** git ends the path of an object directory at a line break, and Node loads no program from below a backslash. */
function unusablePath(path: string): { is: string; hint: string } | undefined {
  if (!/[\\\r\n]/.test(path)) return undefined
  return {
    is: 'its path has a backslash or a line break',
    hint: 'Name another one with --data-dir or CORRAL_DATA_DIR; spaces, quotes and letters of any language are fine.',
  }
}

/**
 * A directory with other files in it is not taken: its mode would be changed, so that nobody else may list it, and what
 * is in it under a name of ours would be taken for ours. `--data-dir .` and `--data-dir /tmp` are slips.
 */
export function otherUse(path: string): { is: string; hint: string } | undefined {
  const other = foreignEntries(path)
  if (other.length === 0) return undefined
  const shown = other.slice(0, 3).join(', ')
  return {
    is: `it holds other files (${shown}${other.length > 3 ? ', …' : ''})`,
    hint: `Name an empty or new directory, such as --data-dir ${shellQuote(join(path, '.corral'))}.`,
  }
}

function foreignEntries(path: string): string[] {
  let entries: string[]
  try {
    entries = readdirSync(path)
  } catch {
    // Not there yet; what else is wrong with it shows when it is made.
    return []
  }
  return entries.includes(schemaFile) ? [] : entries.filter((name) => !ownNames.has(name.split('.')[0] || name)).sort()
}

/** What may lie in a data directory before a start has marked it as one, without endings; and what a new disk has. */
const ownNames: ReadonlySet<string> = new Set([
  ...Object.values(dataDirectoryAt('/'))
    .map((path) => basename(path).split('.')[0] ?? '')
    .filter((name) => name !== ''),
  ...[
    'cradle',
    'lock',
    'platform',
    'pods',
    'ports',
    'reserve',
    'reserve-inodes',
    'snapshots',
    'token',
    'volumes',
    schemaFile,
  ],
  'lost+found',
])

/**
 * Started by root, everything in there is run and obeyed as root: whose directory it is could put programs, keys and links in
 * their places. The user who called sudo is root already.
 */
function refuseForeign(path: string, env: NodeJS.ProcessEnv): void {
  const { uid } = statSync(path)
  if (process.getuid?.() !== 0 || uid === 0 || String(uid) === env.SUDO_UID) return
  throw new CliError(`the data directory ${path} belongs to another user (uid ${uid})`, {
    exitCode: 3,
    hint: `Start as that user, take it with \`chown -R root ${shellQuote(path)}\`, or start with another --data-dir.`,
  })
}

/** Level by level: where a file system refuses new entries with ENOENT, Node's own recursion never ends. */
function makeWithParents(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory()) return
  if (!found && dirname(path) !== path) makeWithParents(dirname(path))
  try {
    mkdirSync(path, { mode: 0o711 })
    // The umask of the user may have taken the right to pass away.
    chmodSync(path, 0o711)
  } catch (error) {
    // Another command that was started at the same moment has made it.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}

/**
 * Started by root, every sandbox has a user of its own, who must get to what is bound in from here. A level that is not
 * there yet will be made so.
 */
export function checkReachable(directory: DataDirectory): void {
  if (process.getuid?.() !== 0) return
  for (let path = resolve(directory.path); path !== '/'; path = dirname(path)) {
    const found = statSync(path, { throwIfNoEntry: false })
    if (!found || (found.mode & 0o001) !== 0) continue
    throw new CliError(`the users of sandboxes cannot pass through ${path}`, {
      hint: `Allow it with \`chmod o+x ${shellQuote(path)}\`, or start with another --data-dir.`,
    })
  }
}

/**
 * For a process that makes what sandboxes see: their users have to read it, and a umask such as 077 would keep them out.
 * What is not for them is made with a mode of its own.
 */
export function letSandboxesRead(): void {
  process.umask(0o022)
}

export interface DirectoryLock {
  release(): Promise<void>
}

/** One platform a directory. The lock is a socket: the kernel drops it with the process, however that ends. */
export async function lockDataDirectory(directory: DataDirectory): Promise<DirectoryLock> {
  const address = lockAddress(directory)
  const server: Server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve_, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? inUse(directory) : error),
    )
    server.listen(address, resolve_)
  })
  server.unref()
  return {
    release: () => new Promise((done) => server.close(() => done())),
  }
}

function lockAddress(directory: DataDirectory): string {
  const name = `corral-${createHash('sha256').update(realPath(directory.path)).digest('hex').slice(0, 32)}`
  return process.platform === 'linux' ? `\0${name}` : join(directory.path, 'lock')
}

/** The same for every link that leads there: two platforms on one database would destroy each other's work. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    // Not made yet, so nobody has it.
    return resolve(path)
  }
}

/** Whether a platform has the directory now, ready or still starting. */
export function isLocked(directory: DataDirectory): Promise<boolean> {
  return new Promise((resolve_) => {
    const socket = connect(lockAddress(directory))
    socket.once('connect', () => {
      socket.destroy()
      resolve_(true)
    })
    socket.once('error', () => resolve_(false))
  })
}

function inUse(directory: DataDirectory): CliError {
  const running = readReady(directory)
  const who = running ? ` by process ${running.pid} (${running.url})` : ''
  return new CliError(`${directory.path} is in use${who}`, {
    hint: 'Use that platform, stop it first, or start with another --data-dir.',
    exitCode: 3,
  })
}

export interface ReadyRecord {
  url: string
  token: string
  kubeconfig: string
  pid: number
  isolation: string
}

export function readReady(directory: DataDirectory): ReadyRecord | undefined {
  try {
    return JSON.parse(readFileSync(directory.readyFile, 'utf8')) as ReadyRecord
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES')
      throw new CliError(`${directory.path} belongs to another user`, {
        exitCode: 3,
        hint: 'Use that platform as its user, or over HTTP with --url and --token; or give a --data-dir of your own.',
        cause: error,
      })
    // Absent or torn: nothing is ready.
    return undefined
  }
}

/**
 * A secret kept in the directory, made on first use, and again where a machine that lost its power has left an empty
 * file of it: with nothing in it no client could get in.
 */
export function ensureSecret(directory: DataDirectory, name: string): string {
  const path = join(directory.path, name)
  const kept = existsSync(path) ? readFileSync(path, 'utf8').replaceAll('\0', '').trim() : ''
  if (kept !== '') return kept
  const secret = randomBytes(32).toString('base64url')
  writeAtomically(path, `${secret}\n`, 0o600)
  return secret
}

/** A secret from a file that Corral does not write, such as a Secret mounted into a pod. */
export function readSecretFile(path: string, flag: string): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new CliError(`${flag}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`, {
      exitCode: 2,
      hint: 'Check the path; in a pod, check that the Secret is mounted and readable by its user.',
      cause: error,
    })
  }
  if (text.length < 16)
    throw new CliError(`${flag}: ${path} holds fewer than 16 characters, which can be guessed`, { exitCode: 2 })
  return text
}

export interface Ports {
  http?: number
  api?: number
  broker?: number
}

/** Ports of the last run: clients keep addresses, so the next run takes the same where they are free. */
export function readPorts(directory: DataDirectory): Ports {
  let kept: Record<string, unknown> | null
  try {
    kept = JSON.parse(readFileSync(join(directory.path, 'ports.json'), 'utf8'))
  } catch {
    // First start.
    return {}
  }
  const isPort = (value: unknown): value is number =>
    Number.isInteger(value) && (value as number) > 0 && (value as number) < 65_536
  // What is no port keeps no platform from starting: it takes another one.
  const named = (['http', 'api', 'broker'] as const).map((name) => [name, kept?.[name]] as const)
  return Object.fromEntries(named.filter(([, port]) => isPort(port)))
}

export function writePorts(directory: DataDirectory, ports: Ports): void {
  writeAtomically(join(directory.path, 'ports.json'), `${JSON.stringify(ports)}\n`, 0o644)
}

export function writeAtomically(path: string, content: string, mode: number): void {
  const half = `${path}.${process.pid}.new`
  rmSync(half, { force: true })
  writeFileSync(half, content, { mode })
  renameSync(half, path)
}
