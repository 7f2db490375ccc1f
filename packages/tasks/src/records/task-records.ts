import type { EventLog } from '../event-log/event-log.js'
import { TaskError } from '../task-error.js'

/**
 * What a task's record holds beside its events:
 * - `agent-log`: the agent's raw output,
 * - `diff`: the accepted change as a patch,
 * - `bundle-in`, `bundle-out`: the history that went into the sandbox and the one that came out,
 * - `run/NUMBER`: the raw output of every later run of the agent; `agent-log` is the first one's,
 * - `session`: the agent's own state, with which a later task goes on,
 * - `artifact/NAME`, `checkpoint/NAME`: files the task left for people, and states of its work it can go back to,
 * - `lfs/OID`: contents of files the agent stored with Git LFS.
 */
export type RecordPart =
  | 'agent-log'
  | 'diff'
  | 'bundle-in'
  | 'bundle-out'
  | 'session'
  | `artifact/${string}`
  | `checkpoint/${string}`
  | `lfs/${string}`
  | `run/${string}`

/** The parts of which a task has any number. */
export type RecordCollection = 'artifact' | 'checkpoint' | 'lfs' | 'run'

/** The record of one task. A part is replaced as a whole or grows through a writer; a missing part reads as empty. */
export interface TaskRecord {
  /** Undefined where the part is missing. */
  find(part: RecordPart): Promise<{ sizeBytes: number } | undefined>
  /** The content as it is now. */
  read(part: RecordPart): AsyncIterable<Uint8Array>
  /** Replaces the part. A reader sees the former content or the new one; a failed write leaves the former. */
  write(
    part: RecordPart,
    content: AsyncIterable<Uint8Array>,
    options: { signal: AbortSignal },
  ): Promise<{ sizeBytes: number }>
  /** Starts the part anew and grows it; what has been written can be read at once. The caller closes the writer. */
  openWriter(part: RecordPart): Promise<RecordWriter>
  /** Names in a collection, sorted. */
  list(collection: RecordCollection): Promise<string[]>
  /** A missing part is no error. */
  remove(part: RecordPart): Promise<void>
  /** A file on this machine with the part's content, for programs that take a path. It must not be changed. */
  localFile(part: RecordPart): Promise<string>
  /** Keeps a file that a program wrote into the work directory as a part; the path is no longer valid afterwards. */
  keepFile(part: RecordPart, path: string): Promise<void>
  /** A directory on this machine in which programs such as git may work for this task. Exists; goes with the record. */
  workDirectory(): Promise<string>
}

export interface RecordWriter {
  /** Resolves when the storage has taken the bytes. `DiskFull` where there is no room for them. */
  write(data: Uint8Array): Promise<void>
  /** Drops the second half of what was written, so that a full disk has room for how the task ended. */
  dropHalf(): Promise<void>
  close(): Promise<void>
}

/** The records of all tasks, kept until the task's object is deleted. */
export interface TaskRecords {
  readonly events: EventLog
  /** A handle; nothing is read or made yet. */
  of(taskUid: string): TaskRecord
  /** Events and parts of a task whose object is being deleted. */
  remove(taskUid: string): Promise<void>
  close(): Promise<void>
}

/** The name of a part in a collection; agents choose it, so what could leave the collection's directory is refused. */
export function checkedPartName(part: `${RecordCollection}/${string}`): string {
  const name = part.slice(part.indexOf('/') + 1)
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name) || name.endsWith(partialSuffix))
    throw new TaskError('BadRequest', `"${name.slice(0, 140)}" cannot be the name of a kept file`, {
      hint: 'Use up to 128 letters, digits, dots, dashes and underscores, beginning with a letter or digit.',
    })
  return name
}

/** What the name of a file ends with while it is being written. */
export const partialSuffix = '.partial'
