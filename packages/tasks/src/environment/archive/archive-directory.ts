import { randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream, readdirSync, readFileSync } from 'node:fs'
import { mkdir, open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SnapshotError, type SnapshotInfo } from '@corral/ports'
import { createTarFilter, type TarSummary } from './tar-filter.js'

/** One directory of a sandbox: where it was, and what is in it as a tar stream. */
export interface Tree {
  path: string
  archive(): AsyncIterable<Uint8Array>
}

export interface KeepRequest extends Pick<SnapshotInfo, 'name' | 'namespace' | 'podUid' | 'labels'> {
  trees: readonly Tree[]
  secrets: readonly string[]
  /** More than this is not kept. */
  maxBytes: number
  createdAt: string
}

/**
 * Snapshots as archives on a disk of ours: a directory for each, with `snapshot.json` and `tree-N.tar` for the Nth of its paths.
 * What begins with a dot is half made or half removed, and is swept at the next start. Written by one process at a time.
 */
export interface ArchiveDirectory {
  /** Writes all of it down, or nothing. Rejects with a `SnapshotError`. */
  keep(request: KeepRequest): Promise<SnapshotInfo>
  /** The oldest first. */
  list(): SnapshotInfo[]
  find(name: string): SnapshotInfo | undefined
  /** The Nth tree as it was kept; a snapshot is not removed while one is read. */
  read<T>(name: string, index: number, use: (archive: Readable) => Promise<T>): Promise<T>
  isRead(name: string): boolean
  /** An absent one counts as removed. Rejects with `InUse` while it is read. */
  remove(name: string): Promise<void>
}

/** Raised when what is on the disk changes its meaning; others are not listed. */
const formatVersion = 1

export async function openArchiveDirectory(path: string): Promise<ArchiveDirectory> {
  await mkdir(path, { recursive: true, mode: 0o700 })
  for (const name of readdirSync(path)) if (name.startsWith('.')) await rm(join(path, name), { recursive: true })
  const kept = new Map<string, SnapshotInfo>()
  for (const name of readdirSync(path)) {
    const info = readInfo(join(path, name, 'snapshot.json'))
    if (info?.name === name) kept.set(name, info)
  }
  const readers = new Map<string, number>()

  return {
    async keep(request) {
      const { name } = request
      const before = kept.get(name)
      if (before?.podUid === request.podUid) return before
      if (before) throw new SnapshotError('AlreadyExists', `there is a snapshot ${name} of another build`)
      const half = join(path, `.${name}-${randomUUID()}`)
      try {
        await mkdir(half, { mode: 0o700 })
        const info = await writeTrees(half, request)
        await writeFile(join(half, 'snapshot.json'), JSON.stringify({ version: formatVersion, ...info }))
        // Without it a power failure could leave a name that leads to less than was written.
        for (const file of readdirSync(half)) await flushed(join(half, file))
        await rename(half, join(path, name))
        kept.set(name, info)
        return info
      } catch (error) {
        await rm(half, { recursive: true, force: true })
        throw refusal(error)
      }
    },
    list: () => [...kept.values()].sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1)),
    find: (name) => kept.get(name),
    async read(name, index, use) {
      readers.set(name, (readers.get(name) ?? 0) + 1)
      const archive = createReadStream(join(path, name, `tree-${index}.tar`), { highWaterMark: 1024 * 1024 })
      try {
        return await use(archive)
      } finally {
        archive.destroy()
        const left = (readers.get(name) ?? 1) - 1
        if (left > 0) readers.set(name, left)
        else readers.delete(name)
      }
    },
    isRead: (name) => readers.has(name),
    async remove(name) {
      if (!kept.has(name)) return
      if (readers.has(name)) throw new SnapshotError('InUse', `${name} is being copied into a sandbox`)
      kept.delete(name)
      const going = join(path, `.${name}-${randomUUID()}`)
      await rename(join(path, name), going)
      await rm(going, { recursive: true, force: true })
    },
  }
}

async function writeTrees(
  directory: string,
  { trees, secrets, maxBytes, name, namespace, podUid, labels, createdAt }: KeepRequest,
): Promise<SnapshotInfo> {
  const stripped = { setuid: 0, devices: 0, sockets: 0, attributes: 0 }
  let [bytes, files] = [0, 0]
  for (const [index, { archive }] of trees.entries()) {
    const target = join(directory, `tree-${index}.tar`)
    const { entries, stripped: taken } = await writeTree(archive(), target, secrets, maxBytes - bytes)
    stripped.setuid += taken.setuid
    stripped.devices += taken.devices
    files += entries
    bytes += (await stat(target)).size
  }
  const paths = trees.map((tree) => tree.path)
  return { name, namespace, podUid, paths, bytes, files, createdAt, labels, stripped }
}

async function writeTree(
  archive: AsyncIterable<Uint8Array>,
  target: string,
  secrets: readonly string[],
  maxBytes: number,
): Promise<TarSummary> {
  const filter = createTarFilter(secrets)
  async function* filtered(): AsyncIterable<Buffer> {
    let bytes = 0
    for await (const chunk of archive) {
      const piece = filter.push(chunk)
      bytes += piece.length
      if (bytes > maxBytes)
        throw new SnapshotError(
          'Failed',
          'what set-up left is larger than built environments may be (--snapshot-budget)',
        )
      if (piece.length > 0) yield piece
    }
  }
  await pipeline(Readable.from(filtered()), createWriteStream(target, { mode: 0o600 }))
  return filter.end()
}

async function flushed(file: string): Promise<void> {
  const handle = await open(file, 'r+')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function refusal(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (error instanceof SnapshotError || (code !== 'ENOSPC' && code !== 'EDQUOT')) return error
  return new SnapshotError('Failed', 'the disk of the server is full', { cause: error })
}

function readInfo(file: string): SnapshotInfo | undefined {
  try {
    const { version, ...info } = JSON.parse(readFileSync(file, 'utf8')) as SnapshotInfo & { version: number } // our own
    return version === formatVersion ? info : undefined
  } catch {
    return undefined // not a snapshot, or one that a full disk cut short
  }
}
