import { spawn } from 'node:child_process'
import { openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CliError } from '../cli-error.js'
import {
  type DataDirectory,
  dataDirectoryAt,
  defaultDataDirectory,
  makeDataDirectory,
  type ReadyRecord,
  readReady,
} from '../platform/data-directory.js'
import type { PlatformAddress } from './tasks-client.js'

export interface FindOptions {
  dataDir?: string | undefined
  url?: string | undefined
  token?: string | undefined
}

/** The running platform: named by flags or environment, else the one of the data directory. Undefined when none answers. */
export async function findPlatform(
  options: FindOptions,
  env: NodeJS.ProcessEnv = process.env,
): Promise<(PlatformAddress & Partial<ReadyRecord>) | undefined> {
  const url = options.url ?? env.CORRAL_URL
  if (url) {
    const token = options.token ?? env.CORRAL_TOKEN
    if (!token)
      throw new CliError('CORRAL_URL is set but CORRAL_TOKEN is not', {
        exitCode: 2,
        hint: 'Give the token that `corral up` printed.',
      })
    return { url: url.replace(/\/+$/, ''), token }
  }
  const ready = readReady(directoryOf(options, env))
  return ready && (await answers(ready.url)) ? ready : undefined
}

export async function requirePlatform(options: FindOptions): Promise<PlatformAddress & Partial<ReadyRecord>> {
  const platform = await findPlatform(options)
  if (platform) return platform
  throw new CliError('no platform is running', {
    hint: 'Start one with `corral up`, or set CORRAL_URL and CORRAL_TOKEN.',
    exitCode: 3,
  })
}

export const idleMinutes = 10

/** Finds the platform or starts one in the background that ends itself when nothing uses it. */
export async function ensurePlatform(
  options: FindOptions,
  say: (text: string) => void,
): Promise<PlatformAddress & Partial<ReadyRecord>> {
  const found = await findPlatform(options)
  if (found) return found
  const directory = directoryOf(options, process.env)
  makeDataDirectory(directory.path)
  const logPath = join(directory.path, 'platform.log')
  const log = openSync(logPath, 'a', 0o600)
  const entry = process.argv[1]
  if (!entry) throw new CliError('cannot tell how this program was started', { exitCode: 3 })
  say(`starting a platform in the background (it ends itself after ${idleMinutes} idle minutes; log: ${logPath})`)
  const child = spawn(process.execPath, [entry, 'up', '--data-dir', directory.path, '--idle-exit', `${idleMinutes}m`], {
    detached: true,
    stdio: ['ignore', log, log],
  })
  child.unref()
  const ended = new Promise<never>((_, reject) => {
    child.once('exit', (code) => {
      const said = lastLines(logPath)
      // Somebody else's platform took the directory a moment before: it is the one to wait for.
      if (!said.includes(`${directory.path} is in use`)) reject(startFailure(code, said))
    })
  })
  ended.catch(() => undefined) // only the race below looks at it
  return Promise.race([waitUntilReady(directory), ended])
}

async function waitUntilReady(directory: DataDirectory): Promise<ReadyRecord> {
  const deadline = Date.now() + 60_000
  while (Date.now() < deadline) {
    const ready = readReady(directory)
    if (ready && (await answers(ready.url))) return ready
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new CliError('the platform did not become ready within a minute', {
    exitCode: 3,
    hint: `See ${directory.path}/platform.log.`,
  })
}

function lastLines(path: string): string {
  return readFileSync(path, 'utf8').trim().split('\n').slice(-3).join('\n')
}

function startFailure(code: number | null, said: string): CliError {
  return new CliError(`the platform ended with code ${code} while starting:\n${said}`, {
    exitCode: 3,
    hint: 'Try `corral doctor`.',
  })
}

function directoryOf(options: FindOptions, env: NodeJS.ProcessEnv): DataDirectory {
  return dataDirectoryAt(options.dataDir ?? defaultDataDirectory(env))
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(15_000) })).ok
  } catch {
    // Not there (any more).
    return false
  }
}
