import { closeSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs'
import { StorageError } from './storage.js'

export interface StorageLock {
  release(): void
}

/**
 * Takes the lock file, which names the holder's process. A file whose holder no longer lives is taken over. Fails with
 * `StorageLocked`, naming the process, while the holder lives.
 */
export function acquireLock(path: string): StorageLock {
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      const fd = openSync(path, 'wx', 0o600)
      writeSync(fd, holderText())
      closeSync(fd)
      return { release: () => releaseLock(path) }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const holder = readHolder(path)
    if (holder && !hasEnded(holder)) {
      throw new StorageError('StorageLocked', `the storage is in use by process ${holder.pid} (lock file ${path})`)
    }
    unlinkIfPresent(path)
  }
  throw new StorageError('StorageLocked', `the lock file ${path} keeps reappearing; another process is starting`)
}

interface Holder {
  pid: number
  /** Start time of the process where the system tells it, so that a reused process id is not taken for the holder. */
  started: string
}

const holderText = (): string => JSON.stringify({ pid: process.pid, started: startOf(process.pid) })

function readHolder(path: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Holder
  } catch {
    return undefined // Cut short by a crash while it was written: no process holds the lock.
  }
}

/** A process that was killed a moment ago is there until the kernel has taken its memory back. */
const dyingMs = 1_000
const lookMs = 20

function hasEnded(holder: Holder): boolean {
  for (const deadline = Date.now() + dyingMs; isAlive(holder); ) {
    if (Date.now() >= deadline) return false
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lookMs)
  }
  return true
}

function isAlive(holder: Holder): boolean {
  try {
    process.kill(holder.pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  const { state, started } = statOf(holder.pid)
  // A dead one keeps its entry where its parent does not ask how it ended, as the first process of many containers.
  if (state === 'Z' || state === 'X') return false
  return started === '' || holder.started === '' || started === holder.started
}

const startOf = (pid: number): string => statOf(pid).started

function statOf(pid: number): { state: string; started: string } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0] ?? '', started: fields[19] ?? '' }
  } catch {
    return { state: '', started: '' } // No procfs here: the process id alone decides.
  }
}

function releaseLock(path: string): void {
  if (readHolder(path)?.pid === process.pid) unlinkIfPresent(path)
}

function unlinkIfPresent(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
