import { spawn } from 'node:child_process'
import { closeSync, fstatSync, openSync, readSync, statfsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { CliError } from '../cli-error.js'
import {
  type DataDirectory,
  defaultDataDirectory,
  isLocked,
  makeDataDirectory,
  type ReadyRecord,
  readReady,
} from '../platform/data-directory.js'
import { answers } from './answers.js'
import { failureIn, isDirectoryInUse } from './start-failure.js'

/** A start is given up after so long although its process lives. */
const startLimitMs = 10 * 60_000
const lookEveryMs = 50

export function platformLogOf(directory: DataDirectory): string {
  return join(directory.path, 'platform.log')
}

/**
 * Starts `corral up` in the background and resolves once it answers. Fails as soon as its process has ended, with what
 * this start wrote and nothing from before. Where another start took the directory a moment earlier, its platform is
 * waited for instead.
 */
export async function startInBackground(directory: DataDirectory, args: readonly string[]): Promise<ReadyRecord> {
  makeDataDirectory(directory.path)
  const entry = process.argv[1]
  if (!entry) throw new CliError('cannot tell how this program was started', { exitCode: 3 })
  const log = openSync(platformLogOf(directory), 'a+', 0o600)
  const { size } = fstatSync(log)
  const written = (): string => readFrom(log, size)
  try {
    const child = spawn(process.execPath, [entry, 'up', '--data-dir', directory.path, ...args], {
      detached: true,
      stdio: ['ignore', log, log],
    })
    child.unref()
    let failed: Error | undefined
    child.once('error', (error) => {
      failed = error
    })
    const hasEnded = (): boolean => failed !== undefined || child.exitCode !== null || child.signalCode !== null
    const deadline = Date.now() + startLimitMs
    while (Date.now() < deadline) {
      const ended = hasEnded()
      const ready = readReady(directory)
      if (ready && (await answers(ready.url))) return ready
      if (failed) throw failed
      if (ended && !(isDirectoryInUse(written()) && (await isLocked(directory))))
        throw failureIn(written(), child.exitCode ?? child.signalCode, {
          logPath: platformLogOf(directory),
          freeBytes: freeBytesOf(directory.path),
          dataDir: directory.path === resolve(defaultDataDirectory(process.env)) ? undefined : directory.path,
        })
      await pause(lookEveryMs)
    }
    throw new CliError(`the platform did not become ready within ${startLimitMs / 60_000} minutes`, {
      exitCode: 3,
      hint: `See ${platformLogOf(directory)}.`,
    })
  } finally {
    closeSync(log)
  }
}

function freeBytesOf(path: string): number {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}

/** What was written behind `start`, its last 64 KiB at most. */
function readFrom(file: number, start: number): string {
  const length = Math.min(fstatSync(file).size - start, 64 * 1024)
  const buffer = Buffer.alloc(Math.max(0, length))
  readSync(file, buffer, 0, buffer.length, fstatSync(file).size - buffer.length)
  return buffer.toString('utf8')
}
