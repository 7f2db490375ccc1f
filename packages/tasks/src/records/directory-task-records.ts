import { createReadStream } from 'node:fs'
import { copyFile, type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type FileEventLogOptions, fileEventLog } from '../event-log/file-event-log.js'
import { TaskError } from '../task-error.js'
import { checkedUid } from '../task-uid.js'
import {
  checkedPartName,
  partialSuffix,
  type RecordCollection,
  type RecordPart,
  type RecordWriter,
  type TaskRecord,
  type TaskRecords,
} from './task-records.js'

const fileNames = {
  'agent-log': 'agent.log',
  diff: 'diff.patch',
  'bundle-in': 'in.bundle',
  'bundle-out': 'out.bundle',
  session: 'session.json',
} as const

const directoryNames: Record<RecordCollection, string> = {
  artifact: 'artifacts',
  checkpoint: 'checkpoints',
  lfs: 'lfs',
  run: 'runs',
}

/** One directory a task, `<directory>/<uid>`, which is also the task's work directory. */
export function directoryTaskRecords(options: FileEventLogOptions): TaskRecords {
  const events = fileEventLog(options)
  const directoryOf = (uid: string): string => join(options.directory, checkedUid(uid))
  return {
    events,
    of: (uid) => directoryTaskRecord(directoryOf(uid)),
    async remove(uid) {
      await events.remove(uid)
      await rm(directoryOf(uid), { recursive: true, force: true })
    },
    close: () => events.close(),
  }
}

function directoryTaskRecord(directory: string): TaskRecord {
  const pathOf = (part: RecordPart): string => join(directory, relativePathOf(part))
  const prepared = async (part: RecordPart): Promise<string> => {
    const path = pathOf(part)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 }).catch(rethrowDiskFull)
    return path
  }
  const find = (part: RecordPart): Promise<{ sizeBytes: number } | undefined> =>
    stat(pathOf(part)).then((info) => ({ sizeBytes: info.size }), undefinedIfMissing)

  return {
    find,
    async *read(part) {
      if (await find(part)) yield* createReadStream(pathOf(part))
    },
    async write(part, content, { signal }) {
      const path = await prepared(part)
      const partial = `${path}${partialSuffix}`
      try {
        const sizeBytes = await writeFileSynced(partial, content, signal)
        await rename(partial, path)
        return { sizeBytes }
      } catch (error) {
        await rm(partial, { force: true })
        return rethrowDiskFull(error)
      }
    },
    async openWriter(part) {
      return fileWriter(await open(await prepared(part), 'w', 0o600).catch(rethrowDiskFull))
    },
    async list(collection) {
      const names = await readdir(join(directory, directoryNames[collection])).catch(undefinedIfMissing)
      return (names ?? []).filter((name) => !name.endsWith(partialSuffix)).sort()
    },
    remove: (part) => rm(pathOf(part), { force: true }),
    async localFile(part) {
      if (!(await find(part))) throw new TaskError('InternalError', `the task's record holds no ${part}`)
      return pathOf(part)
    },
    async keepFile(part, path) {
      const target = await prepared(part)
      if (target !== path) await moveFile(path, target)
    },
    async workDirectory() {
      await mkdir(directory, { recursive: true, mode: 0o700 }).catch(rethrowDiskFull)
      return directory
    },
  }
}

function relativePathOf(part: RecordPart): string {
  for (const [collection, directory] of Object.entries(directoryNames))
    if (part.startsWith(`${collection}/`)) return join(directory, checkedPartName(part as 'artifact/'))
  return fileNames[part as keyof typeof fileNames]
}

async function writeFileSynced(path: string, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number> {
  const handle = await open(path, 'w', 0o600)
  try {
    let sizeBytes = 0
    for await (const chunk of content) {
      signal.throwIfAborted()
      await handle.appendFile(chunk)
      sizeBytes += chunk.length
    }
    await handle.sync()
    return sizeBytes
  } finally {
    await handle.close()
  }
}

function fileWriter(handle: FileHandle): RecordWriter {
  return {
    write: (data) => handle.appendFile(data).catch(rethrowDiskFull),
    async dropHalf() {
      await handle.truncate(Math.floor((await handle.stat()).size / 2))
    },
    close: () => handle.close(),
  }
}

/** A work directory may lie on another file system than the records. */
async function moveFile(from: string, to: string): Promise<void> {
  try {
    await rename(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await copyFile(from, `${to}${partialSuffix}`).catch(rethrowDiskFull)
    await rename(`${to}${partialSuffix}`, to)
    await rm(from, { force: true })
  }
}

function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

function rethrowDiskFull(error: unknown): never {
  if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  throw new TaskError('DiskFull', 'the disk is full: the record of the task could not be written', {
    hint: 'Free space on the disk of the data directory, then retry the task.',
    cause: error,
  })
}
