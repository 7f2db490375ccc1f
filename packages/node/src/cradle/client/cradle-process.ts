import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  statSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { IsolationError } from '../../isolation/isolation-error.js'
import { type CradleConfig, cradleLines } from '../protocol/messages.js'

const readyTimeoutMs = 60_000

/** The cradle's entry beside this module: the compiled one, or its source when running from source. */
export function defaultCradleEntry(): string {
  const here = fileURLToPath(import.meta.url)
  return fileURLToPath(new URL(`../../cradle-main${here.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url))
}

/** Where set-up puts the compiled supervisor. It may not be there. */
export function defaultSupervisorPath(): string {
  return fileURLToPath(new URL('../../../dist/native/corral-supervisor', import.meta.url))
}

/** From source, in tests and during development, TypeScript is loaded by tsx. */
function sourceRuntime(): string[] {
  return ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href]
}

/**
 * Starts a cradle in a session of its own and resolves with its pid once it accepts connections; with undefined where
 * the directory has one already, which may be starting or ending.
 */
export function startCradle(options: {
  nodePath: string
  entry: string
  config: CradleConfig
}): Promise<number | undefined> {
  const { nodePath, entry, config } = options
  const directory = join(config.dataDir, 'cradle')
  const log = openSync(join(directory, 'cradle.log'), 'a', 0o600)
  const runtime = entry.endsWith('.ts') ? sourceRuntime() : ['--max-semi-space-size=1', '--max-old-space-size=128']
  return new Promise((resolve, reject) => {
    const child = spawn(nodePath, [...runtime, entry, JSON.stringify(config)], {
      detached: true,
      stdio: ['ignore', 'pipe', log],
      env: { PATH: process.env.PATH ?? '/usr/bin:/bin', NODE_NO_WARNINGS: '1' },
    })
    closeSync(log)
    const fail = (reason: string, cause?: Error): void => {
      clearTimeout(timer)
      const details = readFileSync(join(directory, 'cradle.log'), 'utf8').trim().split('\n').slice(-5).join(' | ')
      reject(new IsolationError('CradleUnavailable', `${reason}${details ? `: ${details}` : ''}`, { cause }))
    }
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      fail(`the cradle was not ready within ${readyTimeoutMs} ms`)
    }, readyTimeoutMs)
    child.once('error', (error) => fail('the cradle could not be started', error))
    // Comes after its last line, which an exit may overtake.
    child.once('close', (code) => fail(`the cradle ended with ${code}`))
    child.stdout?.once('data', (line: Buffer) => {
      clearTimeout(timer)
      child.removeAllListeners('close')
      child.stdout?.destroy()
      child.unref()
      resolve(line.toString() === cradleLines.locked ? undefined : child.pid)
    })
  })
}

/**
 * Kills the cradle of a directory, whose cells end with it; the next one clears up. Only a process that works in the
 * directory is one: the number may belong to another process by now.
 */
export function killCradle(cradleDirectory: string): void {
  try {
    const pid = Number(readFileSync(join(cradleDirectory, 'cradle.pid'), 'utf8'))
    if (readlinkSync(`/proc/${pid}/cwd`) === realpathSync(cradleDirectory)) process.kill(pid, 'SIGKILL')
  } catch {
    // It ended in the meantime.
  }
}

/**
 * Copies a program to `<data>/runtime/<hash>/`, where a process of any uid can read it, and answers its path there.
 * Below a private home directory nothing could be bound into a cell after the uid has been dropped.
 */
export function stageProgram(dataDir: string, source: string): string {
  const hash = createHash('sha256').update(readFileSync(source)).digest('hex').slice(0, 16)
  const directory = join(dataDir, 'runtime', hash)
  const target = join(directory, basename(source))
  if (statSync(target, { throwIfNoEntry: false })) return target
  mkdirSync(directory, { recursive: true, mode: 0o755 })
  const temporary = `${target}.${process.pid}`
  copyFileSync(source, temporary)
  chmodSync(temporary, 0o755)
  renameSync(temporary, target)
  return target
}

/** Directories every tier needs: the data directory with mode 0711, the cradle's with 0700. */
export function prepareDataDirectory(dataDir: string): void {
  mkdirSync(join(dataDir, 'cradle', 's'), { recursive: true, mode: 0o700 })
  mkdirSync(join(dataDir, 'runtime'), { recursive: true })
  chmodSync(dataDir, 0o711)
  chmodSync(join(dataDir, 'cradle'), 0o700)
  chmodSync(join(dataDir, 'runtime'), 0o711)
}
