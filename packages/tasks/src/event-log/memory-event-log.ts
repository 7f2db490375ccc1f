import { checkedUid } from '../task-uid.js'
import type { StoredEvent } from './event-lines.js'
import { type EventLog, type EventLogTail, onceKey, remember } from './event-log.js'
import { Followers } from './followers.js'

interface MemoryLog {
  events: StoredEvent[]
  once: Set<string>
  agentEvents: number
  finished: boolean
  /** Ended, possibly without its `result` event. */
  ended: boolean
}

/** Event logs that end with the process. */
export function memoryEventLog(options: { now: () => Date }): EventLog {
  const logs = new Map<string, MemoryLog>()
  const followers = new Followers()
  let isClosed = false
  const logOf = (uid: string): MemoryLog => {
    const empty = { events: [], once: new Set<string>(), agentEvents: 0, finished: false, ended: false }
    const log = logs.get(checkedUid(uid)) ?? empty
    logs.set(uid, log)
    return log
  }
  const tailOf = ({ events, agentEvents, finished }: MemoryLog): EventLogTail => ({
    sequence: events.length,
    agentEvents,
    finished,
  })
  return {
    async append(uid, events, source = 'platform') {
      const log = logOf(uid)
      const time = options.now().toISOString()
      const fresh = events.filter((event) => !log.once.has(onceKey(event) ?? ''))
      for (const event of fresh) {
        const sequence = log.events.length + 1
        log.events.push({ sequence, time, ...event, ...(source === 'agent' ? { source } : {}) } as StoredEvent)
        remember(log.once, event)
        log.finished ||= event.type === 'result'
      }
      if (source === 'agent') log.agentEvents += fresh.length
      if (log.finished) followers.end(uid)
      else followers.changed(uid)
      return tailOf(log)
    },
    tail: async (uid) => tailOf(logOf(uid)),
    end(uid) {
      logOf(uid).ended = true
      followers.end(uid)
    },
    async *read(uid, { after = 0, follow = false, signal } = {}) {
      const log = logOf(uid)
      const follower = follow && !log.ended && !isClosed ? followers.follow(uid, signal) : undefined
      try {
        let next = after
        while (!signal?.aborted) {
          const isLast = follower?.isLast ?? true
          for (let event = log.events[next]; event; event = log.events[next]) {
            if (signal?.aborted) return
            next = event.sequence
            yield event
            if (event.type === 'result' && follow) return
          }
          if (isLast) return
          await follower?.next()
        }
      } finally {
        follower?.leave()
      }
    },
    async remove(uid) {
      logs.delete(checkedUid(uid))
      followers.end(uid)
    },
    async close() {
      isClosed = true
      followers.endAll()
    },
  }
}
