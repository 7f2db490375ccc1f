import { type FileHandle, mkdir, open, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { KeyedLock } from '../keyed-lock.js'
import { TaskError } from '../task-error.js'
import { checkedUid } from '../task-uid.js'
import { type EventLines, readEventLines, type StoredEvent } from './event-lines.js'
import { type EventLog, type EventLogTail, onceKey, remember } from './event-log.js'
import { Followers } from './followers.js'
import { createReadTurns } from './read-turns.js'
import { RecentBatches } from './recent-batches.js'

interface OpenLog extends EventLogTail {
  handle: FileHandle
  /** Size of what was appended and is on the disk. A batch in flight lies beyond it and is shown to no reader. */
  committedBytes: number
  /** A failed batch could not be cut off: that has to happen before the next one. */
  hasLeftovers: boolean
  /** Keys of the events in it that happen once. */
  once: Set<string>
  recent: RecentBatches
}

export interface FileEventLogOptions {
  directory: string
  now: () => Date
  /** Another process appends: followers look at the file this often instead of waiting for an append of ours. */
  pollMs?: number
}

/** Files `<directory>/<uid>/events.ndjson`, one event a line. A line torn by a crash is cut off at the next open. */
export function fileEventLog(options: FileEventLogOptions): EventLog {
  const opening = new Map<string, Promise<OpenLog>>()
  const opened = new Map<string, OpenLog>()
  const lock = new KeyedLock()
  const followers = new Followers()
  const inTurn = createReadTurns()
  /** Logs that ended without their last event. */
  const cutShort = new Set<string>()
  let isClosed = false
  const pathOf = (uid: string): string => join(options.directory, checkedUid(uid), 'events.ndjson')

  const openLog = async (uid: string): Promise<OpenLog> => {
    const known = opening.get(uid)
    if (known) return known
    const recovering = openAndRecover(pathOf(uid))
    opening.set(uid, recovering)
    recovering.catch(() => opening.delete(uid))
    const log = await recovering
    opened.set(uid, log)
    return log
  }
  const letGo = async (uid: string): Promise<void> => {
    const log = await opening.get(uid)?.catch(() => undefined)
    opening.delete(uid)
    opened.delete(uid)
    await log?.handle.close()
  }
  /** A finished log is only read from now on: its file is not held open. */
  const tailOf = async (uid: string, log: OpenLog): Promise<EventLogTail> => {
    if (log.finished) await letGo(uid)
    const { sequence, agentEvents, finished } = log
    return { sequence, agentEvents, finished }
  }

  /** From memory for a follower that keeps up, else from the file. */
  const linesFrom = async (uid: string, offset: number, after: number): Promise<EventLines> => {
    const log = opened.get(uid)
    const recent = log?.recent.find(offset)
    if (recent) return recent
    const lines = await inTurn(() => readEventLines(pathOf(uid), offset, log?.committedBytes, after))
    // A log that was opened meanwhile may have had a batch in flight.
    const isPremature = !log && lines.nextOffset > (opened.get(uid)?.committedBytes ?? Number.POSITIVE_INFINITY)
    return isPremature ? linesFrom(uid, offset, after) : lines
  }

  return {
    append(uid, events, source = 'platform') {
      return lock.run(uid, async () => {
        const log = await openLog(uid)
        const fresh = events.filter((event) => !log.once.has(onceKey(event) ?? ''))
        if (fresh.length === 0) return tailOf(uid, log)
        const time = options.now().toISOString()
        let { sequence } = log
        const stored = fresh.map((event) => {
          sequence += 1
          return { sequence, time, ...event, ...(source === 'agent' ? { source } : {}) } as StoredEvent
        })
        await appendBatch(log, stored, { keepForFollowers: followers.has(uid) })
        log.sequence = sequence
        if (source === 'agent') log.agentEvents += fresh.length
        for (const event of fresh) remember(log.once, event)
        log.finished ||= fresh.some((event) => event.type === 'result')
        if (log.finished) followers.end(uid)
        else followers.changed(uid)
        return tailOf(uid, log)
      })
    },
    tail: (uid) => lock.run(uid, async () => tailOf(uid, await openLog(uid))),
    end(uid) {
      cutShort.add(uid)
      followers.end(uid)
    },
    async *read(uid, { after = 0, follow = false, signal } = {}) {
      checkedUid(uid)
      const follower = follow && !cutShort.has(uid) && !isClosed ? followers.follow(uid, signal) : undefined
      try {
        let offset = 0
        while (!signal?.aborted) {
          const isLast = follower?.isLast ?? true
          for (;;) {
            const lines = await linesFrom(uid, offset, after)
            if (lines.nextOffset === offset) break
            offset = lines.nextOffset
            for (const event of lines.events) {
              if (event.sequence <= after) continue
              if (signal?.aborted) return
              yield event
              if (event.type === 'result' && follow) return
            }
          }
          if (isLast) return
          await follower?.next(options.pollMs)
        }
      } finally {
        follower?.leave()
      }
    },
    async remove(uid) {
      await lock.run(uid, async () => {
        await letGo(uid)
        cutShort.delete(uid)
        await rm(pathOf(uid), { force: true })
        followers.end(uid)
      })
    },
    async close() {
      isClosed = true
      followers.endAll()
      for (const uid of [...opening.keys()]) await letGo(uid)
    },
  }
}

async function openAndRecover(path: string): Promise<OpenLog> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 }).catch(rethrowDiskFull)
  const handle = await open(path, 'a', 0o600).catch(rethrowDiskFull)
  try {
    const log = { sequence: 0, agentEvents: 0, finished: false, once: new Set<string>(), committedBytes: 0 }
    for (;;) {
      const { events, nextOffset } = await readEventLines(path, log.committedBytes)
      if (nextOffset === log.committedBytes) break
      log.committedBytes = nextOffset
      for (const event of events) {
        log.sequence = event.sequence
        if (event.source === 'agent') log.agentEvents += 1
        log.finished ||= event.type === 'result'
        remember(log.once, event)
      }
    }
    if ((await handle.stat()).size > log.committedBytes) await handle.truncate(log.committedBytes)
    return { ...log, handle, hasLeftovers: false, recent: new RecentBatches() }
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** All of it or nothing: the sequences of a failed batch will be given again. */
async function appendBatch(
  log: OpenLog,
  events: StoredEvent[],
  { keepForFollowers }: { keepForFollowers: boolean },
): Promise<void> {
  const data = Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join(''))
  const cutOff = async (): Promise<void> => {
    log.hasLeftovers = true
    await log.handle.truncate(log.committedBytes)
    log.hasLeftovers = false
  }
  if (log.hasLeftovers) await cutOff()
  try {
    await log.handle.appendFile(data)
    await log.handle.datasync()
  } catch (error) {
    await cutOff().catch(() => undefined) // tried again before the next batch
    return rethrowDiskFull(error)
  }
  const start = log.committedBytes
  log.committedBytes += data.length
  if (keepForFollowers) log.recent.add(start, { events, nextOffset: log.committedBytes })
  else log.recent.clear()
}

function rethrowDiskFull(error: unknown): never {
  if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  throw new TaskError('DiskFull', 'the disk is full: the event log could not be written', {
    hint: 'Free space on the disk of the data directory, then retry the task.',
    cause: error,
  })
}
