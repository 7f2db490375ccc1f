import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryEventLog } from '../event-log/memory-event-log.js'
import { TaskError } from '../task-error.js'
import { checkedUid } from '../task-uid.js'
import {
  checkedPartName,
  type RecordCollection,
  type RecordPart,
  type RecordWriter,
  type TaskRecord,
  type TaskRecords,
} from './task-records.js'

/**
 * Records in memory, for tests and as the smallest example of a storage that is not a disk: only what programs need as
 * a path (`localFile`, `workDirectory`) lies in a temporary directory.
 */
export function memoryTaskRecords(options: { now: () => Date }): TaskRecords {
  const events = memoryEventLog(options)
  const tasks = new Map<string, MemoryTaskRecord>()
  return {
    events,
    of(uid) {
      const known = tasks.get(checkedUid(uid)) ?? new MemoryTaskRecord()
      tasks.set(uid, known)
      return known
    },
    async remove(uid) {
      await events.remove(uid)
      await tasks.get(checkedUid(uid))?.dispose()
      tasks.delete(uid)
    },
    async close() {
      await events.close()
      for (const record of tasks.values()) await record.dispose()
    },
  }
}

class MemoryTaskRecord implements TaskRecord {
  readonly #parts = new Map<string, Uint8Array>()
  #workDirectory: Promise<string> | undefined

  async find(part: RecordPart): Promise<{ sizeBytes: number } | undefined> {
    const content = this.#parts.get(keyOf(part))
    return content && { sizeBytes: content.length }
  }

  async *read(part: RecordPart): AsyncIterable<Uint8Array> {
    const content = this.#parts.get(keyOf(part))
    if (content?.length) yield content
  }

  async write(
    part: RecordPart,
    content: AsyncIterable<Uint8Array>,
    { signal }: { signal: AbortSignal },
  ): Promise<{ sizeBytes: number }> {
    const chunks: Uint8Array[] = []
    for await (const chunk of content) {
      signal.throwIfAborted()
      chunks.push(chunk)
    }
    const whole = Buffer.concat(chunks)
    this.#parts.set(keyOf(part), whole)
    return { sizeBytes: whole.length }
  }

  async openWriter(part: RecordPart): Promise<RecordWriter> {
    const key = keyOf(part)
    let content: Uint8Array = new Uint8Array()
    const set = (next: Uint8Array): void => {
      content = next
      this.#parts.set(key, next)
    }
    set(content)
    return {
      write: async (data) => set(Buffer.concat([content, data])),
      dropHalf: async () => set(content.slice(0, Math.floor(content.length / 2))),
      close: async () => undefined,
    }
  }

  async list(collection: RecordCollection): Promise<string[]> {
    const prefix = `${collection}/`
    return [...this.#parts.keys()]
      .filter((key) => key.startsWith(prefix))
      .map((key) => key.slice(prefix.length))
      .sort()
  }

  async remove(part: RecordPart): Promise<void> {
    this.#parts.delete(keyOf(part))
  }

  async localFile(part: RecordPart): Promise<string> {
    const content = this.#parts.get(keyOf(part))
    if (!content) throw new TaskError('InternalError', `the task's record holds no ${part}`)
    const path = join(await this.workDirectory(), `part-${part.replaceAll('/', '-')}`)
    await writeFile(path, content, { mode: 0o600 })
    return path
  }

  async keepFile(part: RecordPart, path: string): Promise<void> {
    this.#parts.set(keyOf(part), await readFile(path))
    await rm(path)
  }

  workDirectory(): Promise<string> {
    this.#workDirectory ??= mkdtemp(join(tmpdir(), 'corral-task-'))
    return this.#workDirectory
  }

  async dispose(): Promise<void> {
    const directory = await this.#workDirectory
    if (directory) await rm(directory, { recursive: true, force: true })
    this.#workDirectory = undefined
    this.#parts.clear()
  }
}

function keyOf(part: RecordPart): string {
  if (part.includes('/')) checkedPartName(part as 'artifact/')
  return part
}
