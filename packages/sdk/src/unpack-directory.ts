import { spawn } from 'node:child_process'
import { chmod, lstat, mkdir, mkdtemp, readdir, rename, rm, rmdir, utimes } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { errorCode } from '@corral/resources'
import { tarEnd } from './tar-end.js'

const permissions = 0o777

/**
 * Unpacks an archive that a sandbox made into a local directory, which is made where missing. Nothing lands outside of it,
 * whatever the archive says: tar follows links that it finds there, those of an earlier download too, so it works in an
 * empty directory and what it made is moved from there. Devices and set-user-id bits are left out: to root tar gives both.
 * An archive that does not arrive leaves no directory behind that was not there.
 */
export async function unpackDirectory(local: string, archive: AsyncIterable<Uint8Array>): Promise<void> {
  const made = await mkdir(local, { recursive: true })
  let isDone = false
  try {
    const fresh = await mkdtemp(join(local, '.corral-download-'))
    try {
      await extract(fresh, archive)
      await moveEntries(Buffer.from(fresh), Buffer.from(local))
      isDone = true
    } finally {
      await remove(Buffer.from(fresh))
    }
  } finally {
    if (made !== undefined && !isDone) await removeEmpty(local, made)
  }
}

async function extract(directory: string, archive: AsyncIterable<Uint8Array>): Promise<void> {
  // No option that only one of the tars of Linux, Alpine and macOS knows.
  const options = ['--no-same-owner', '--no-same-permissions']
  const tar = spawn('tar', ['-C', directory, '-xf', '-', ...options], { stdio: ['pipe', 'ignore', 'pipe'] })
  const ended = tarEnd(tar)
  ended.catch(() => {})
  try {
    await pipeline(Readable.from(archive), tar.stdin)
  } catch (error) {
    // tar ends at the end of the archive, which may be before the padding behind it was written: then its exit code counts.
    if (!isClosedPipe(error)) {
      tar.kill('SIGKILL')
      throw error
    }
  }
  await ended
}

/**
 * Moves what is in one directory into another, below directories that are there already and never through a link. Names are
 * bytes: one that is no UTF-8 cannot be found again by its text.
 */
async function moveEntries(from: Buffer, to: Buffer): Promise<void> {
  // What the archive calls read-only could not be moved out of.
  await chmod(from, 0o700)
  for (const name of await readdir(from, { encoding: 'buffer' })) {
    const [source, target] = [entry(from, name), entry(to, name)]
    const info = await lstat(source)
    if (info.isBlockDevice() || info.isCharacterDevice()) continue
    if (info.isDirectory()) {
      const isNew = await ensureDirectory(target)
      await moveEntries(source, target)
      // One that was there keeps its own.
      if (isNew) await utimes(target, info.atime, info.mtime)
      if (isNew) await chmod(target, info.mode & permissions)
      continue
    }
    if (info.isFile() && (info.mode & ~permissions & 0o7777) !== 0) await chmod(source, info.mode & permissions)
    await rename(source, target)
  }
}

/** Whether it had to be made. A link or a file in its place makes room, as for tar. */
async function ensureDirectory(path: Buffer): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined)
  if (found?.isDirectory()) return false
  if (found) await rm(path)
  await mkdir(path, { mode: 0o700 })
  return true
}

/** The directories from `last` up to `first`, which were made for this, as far as nothing is in them. */
async function removeEmpty(last: string, first: string): Promise<void> {
  const top = resolve(first)
  for (let directory = resolve(last); ; directory = dirname(directory)) {
    // Something is in it, of the archive or of another program: it stays, with what is above it.
    const isGone = await rmdir(directory).then(
      () => true,
      () => false,
    )
    if (!isGone || directory === top) return
  }
}

async function remove(directory: Buffer): Promise<void> {
  await openUp(directory).catch(() => {}) // then `rm` says what is wrong
  await rm(directory, { recursive: true, force: true })
}

/** Directories that an archive calls read-only cannot be emptied by anybody but root. */
async function openUp(directory: Buffer): Promise<void> {
  await chmod(directory, 0o700)
  for (const name of await readdir(directory, { encoding: 'buffer' })) {
    const path = entry(directory, name)
    if ((await lstat(path)).isDirectory()) await openUp(path)
  }
}

const slash = Buffer.from('/')
const entry = (directory: Buffer, name: Buffer): Buffer => Buffer.concat([directory, slash, name])

/** Whether a write failed because the reader has closed its end. */
function isClosedPipe(error: unknown): boolean {
  return ['EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED'].includes(errorCode(error) ?? '')
}
