import { EventEmitter, once } from 'node:events'
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, rm, stat, truncate } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TaskEvent, TaskEventBody } from '@corral/protocol'
import { KeyedLock } from '../repository/keyed-lock.js'
import { TaskError } from '../task-error.js'

export interface EventLogTail {
  /** Sequence of the last event, 0 when there is none. */
  sequence: number
  /** How many events were derived from the agent's output: the first that many are not new after a restart. */
  agentEvents: number
  /** Whether the terminal `result` event is there. */
  finished: boolean
}

/**
 * Append-only logs, one per task, kept until the task's record goes. An append that has resolved survives a crash of
 * the process; a line torn by one is cut off at the next open. Sequences start at 1 and have no gaps.
 */
export interface EventLog {
  /** A stage event the log already holds is left out: a stage happens once, the passes that report it are repeated. */
  append(taskUid: string, events: readonly TaskEventBody[], source?: 'agent' | 'platform'): Promise<EventLogTail>
  tail(taskUid: string): Promise<EventLogTail>
  /** Nothing more will come, though the `result` event may be missing for want of room: followers end. */
  end(taskUid: string): void
  /** Events after a sequence. With `follow` it waits for more until the `result` event, `end` or `signal`. */
  read(taskUid: string, options?: { after?: number; follow?: boolean; signal?: AbortSignal }): AsyncIterable<TaskEvent>
  remove(taskUid: string): Promise<void>
  close(): Promise<void>
}

interface OpenLog extends EventLogTail {
  handle: FileHandle
  /** `stage/state` of the stage events in it. */
  stages: Set<string>
}

/** Files `<directory>/<uid>/events.ndjson`. */
export function fileEventLog(options: { directory: string; now: () => Date }): EventLog {
  const open_ = new Map<string, Promise<OpenLog>>()
  const lock = new KeyedLock()
  const changed = new EventEmitter().setMaxListeners(0)
  /** Logs that ended without their last event. */
  const cutShort = new Set<string>()
  const pathOf = (uid: string): string => join(options.directory, checkedUid(uid), 'events.ndjson')

  const openLog = (uid: string): Promise<OpenLog> => {
    const known = open_.get(uid)
    if (known) return known
    const opening = openAndRecover(pathOf(uid))
    open_.set(uid, opening)
    opening.catch(() => open_.delete(uid))
    return opening
  }

  /** A finished log is only read from now on: its file is not held open. */
  const letGoIfFinished = async (uid: string, log: OpenLog): Promise<EventLogTail> => {
    if (log.finished) {
      open_.delete(uid)
      await log.handle.close()
    }
    return tailOf(log)
  }

  return {
    append(uid, events, source = 'platform') {
      return lock.run(uid, async () => {
        const log = await openLog(uid)
        const fresh = events.filter((event) => event.type !== 'stage' || !log.stages.has(stageKey(event)))
        if (fresh.length === 0) return tailOf(log)
        const time = options.now().toISOString()
        let { sequence } = log
        const lines = fresh.map((event) => {
          sequence += 1
          return `${JSON.stringify({ sequence, time, ...event, ...(source === 'agent' ? { source } : {}) })}\n`
        })
        await appendAll(log.handle, lines.join(''))
        log.sequence = sequence
        if (source === 'agent') log.agentEvents += fresh.length
        for (const event of fresh) if (event.type === 'stage') log.stages.add(stageKey(event))
        log.finished ||= fresh.some((event) => event.type === 'result')
        changed.emit(uid)
        return letGoIfFinished(uid, log)
      })
    },
    async tail(uid) {
      return lock.run(uid, async () => letGoIfFinished(uid, await openLog(uid)))
    },
    end(uid) {
      cutShort.add(uid)
      changed.emit(uid)
    },
    async *read(uid, { after = 0, follow = false, signal } = {}) {
      let next = after
      while (!signal?.aborted) {
        // Registered before reading, so that an append in between is not missed.
        const more =
          follow && !cutShort.has(uid) ? once(changed, uid, signal ? { signal } : {}).catch(() => undefined) : undefined
        for await (const event of readFrom(pathOf(uid), next)) {
          next = event.sequence
          yield event
          if (event.type === 'result' && follow) return
        }
        if (!more) return
        await more
      }
    },
    async remove(uid) {
      await lock.run(uid, async () => {
        const log = await open_.get(uid)?.catch(() => undefined)
        await log?.handle.close()
        open_.delete(uid)
        cutShort.delete(uid)
        await rm(dirname(pathOf(uid)), { recursive: true, force: true })
      })
    },
    async close() {
      for (const log of await Promise.allSettled(open_.values()))
        if (log.status === 'fulfilled') await log.value.handle.close()
      open_.clear()
    },
  }
}

function tailOf({ sequence, agentEvents, finished }: OpenLog): EventLogTail {
  return { sequence, agentEvents, finished }
}

const stageKey = ({ stage, state }: { stage: string; state: string }): string => `${stage}/${state}`

async function openAndRecover(path: string): Promise<OpenLog> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 }).catch(rethrowDiskFull)
  await cutTornLine(path)
  const state = { sequence: 0, agentEvents: 0, finished: false, stages: new Set<string>() }
  for await (const event of readFrom(path, 0)) {
    state.sequence = event.sequence
    if ((event as { source?: string }).source === 'agent') state.agentEvents += 1
    state.finished ||= event.type === 'result'
    if (event.type === 'stage') state.stages.add(stageKey(event))
  }
  return { ...state, handle: await open(path, 'a', 0o600).catch(rethrowDiskFull) }
}

async function cutTornLine(path: string): Promise<void> {
  const size = await stat(path).then(
    (info) => info.size,
    () => 0,
  )
  if (size === 0) return
  const handle = await open(path, 'r')
  try {
    const window = Buffer.alloc(Math.min(size, 1024 * 1024))
    await handle.read(window, 0, window.length, size - window.length)
    const lastNewline = window.lastIndexOf(10)
    const keep = size - window.length + lastNewline + 1
    if (keep < size) await truncate(path, keep)
  } finally {
    await handle.close()
  }
}

async function* readFrom(path: string, after: number): AsyncGenerator<TaskEvent> {
  const exists = await stat(path).then(
    () => true,
    () => false,
  )
  if (!exists) return
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })
  for await (const line of lines) {
    const event = parseLine(line)
    if (event && event.sequence > after) yield event
  }
}

/** A line still being written reads as undefined: the next round sees it whole. */
function parseLine(line: string): TaskEvent | undefined {
  try {
    return JSON.parse(line) as TaskEvent
  } catch {
    return undefined
  }
}

async function appendAll(handle: FileHandle, text: string): Promise<void> {
  const before = (await handle.stat()).size
  try {
    await handle.appendFile(text)
    await handle.datasync()
  } catch (error) {
    // Half a batch must not stay: the sequences in it will be given again.
    await handle.truncate(before).catch(() => undefined)
    return rethrowDiskFull(error)
  }
}

function rethrowDiskFull(error: unknown): never {
  if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  throw new TaskError('DiskFull', 'the disk is full: the event log could not be written', {
    hint: 'Free space on the disk of the data directory, then retry the task.',
    cause: error,
  })
}

function checkedUid(uid: string): string {
  if (!/^[A-Za-z0-9-]{1,64}$/.test(uid)) throw new TaskError('BadRequest', `"${uid.slice(0, 80)}" is not a task uid`)
  return uid
}
