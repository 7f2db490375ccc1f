import { type StreamFrame, streamRequestSchema, type TaskSummary } from '@corral/protocol'
import type { TaskFeed, TaskService } from '@corral/tasks'
import type { WebSocket } from 'ws'
import { httpError } from './http-error.js'
import { hasRoom, room } from './socket-room.js'
import type { SocketHandler } from './socket-upgrades.js'

const beatMs = 15_000
/**
 * Events that come together go together: one frame in so many milliseconds, of so many events and characters at most. One
 * event may have hundreds of thousands: 500 of them would be kept for each reader, however slow it is.
 */
const gatherMs = 30
const frameEvents = 500
const frameCharacters = 256 * 1024
/** Subscriptions a tab may hold at once. */
const maxSubscriptions = 200

/**
 * The one WebSocket of a tab: changes of the task list, and the events of tasks it subscribes to. A reader that is slow
 * gets the state of its list when it has room again, not every step; events wait in the log until it takes them.
 */
export function streamSocket(tasks: Pick<TaskService, 'events'>, feed: TaskFeed): SocketHandler {
  return async (socket, { query, signal }) => {
    const subscriptions = new Map<string, AbortController>()
    const stopList = followList(socket, feed, query.get('cursor') ?? undefined)
    const beat = setInterval(() => send(socket, { type: 'beat' }), beatMs)
    const running = new Set<Promise<void>>()
    socket.on('message', (data, isBinary) => {
      const request = isBinary ? undefined : streamRequestSchema.safeParse(parseJson(String(data))).data
      if (!request) return socket.close(1008, 'not a request of this stream')
      subscriptions.get(request.task)?.abort()
      subscriptions.delete(request.task)
      if (request.type === 'unsubscribe') return
      if (subscriptions.size >= maxSubscriptions) return socket.close(1008, 'too many subscriptions')
      const stop = new AbortController()
      subscriptions.set(request.task, stop)
      const either = AbortSignal.any([stop.signal, signal])
      const followed = followEvents(socket, tasks, request.task, request.after, either).finally(() =>
        running.delete(followed),
      )
      running.add(followed)
    })
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    clearInterval(beat)
    stopList()
    for (const stop of subscriptions.values()) stop.abort()
    await Promise.all(running)
  }
}

function followList(socket: WebSocket, feed: TaskFeed, cursor: string | undefined): () => void {
  let changed = new Map<string, TaskSummary>()
  let removed = new Set<string>()
  let isReset = false
  let latest = ''
  let isWaiting = false
  const flush = async (): Promise<void> => {
    if (isWaiting) return
    isWaiting = true
    // A client that has left is sent nothing more.
    if (!hasRoom(socket)) await room(socket)
    isWaiting = false
    send(socket, {
      type: 'tasks',
      cursor: latest,
      ...(isReset ? { reset: true } : {}),
      changed: [...changed.values()],
      removed: [...removed],
    })
    changed = new Map()
    removed = new Set()
    isReset = false
  }
  return feed.subscribe(cursor, (change) => {
    if (change.reset) {
      changed = new Map()
      removed = new Set()
      isReset = true
    }
    for (const task of change.changed) {
      changed.set(task.id, task)
      removed.delete(task.id)
    }
    for (const id of change.removed) {
      changed.delete(id)
      removed.add(id)
    }
    latest = change.cursor
    void flush()
  })
}

async function followEvents(
  socket: WebSocket,
  tasks: Pick<TaskService, 'events'>,
  task: string,
  after: number,
  signal: AbortSignal,
): Promise<void> {
  let batch: string[] = []
  let characters = 0
  let timer: NodeJS.Timeout | undefined
  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (batch.length > 0) sendText(socket, eventsFrame(task, batch))
    batch = []
    characters = 0
  }
  try {
    for await (const event of await tasks.events(task, { after, follow: true, signal })) {
      const text = JSON.stringify(event)
      batch.push(text)
      characters += text.length
      if (batch.length >= frameEvents || characters >= frameCharacters) flush()
      else timer ??= setTimeout(flush, gatherMs)
      if (!hasRoom(socket)) await room(socket)
    }
    flush()
    if (!signal.aborted) send(socket, { type: 'ended', task })
  } catch (error) {
    flush()
    if (!signal.aborted) send(socket, { type: 'failed', task, error: httpError(error).body.error })
  }
}

/** A frame of type `events`, of events that are JSON already. */
function eventsFrame(task: string, events: readonly string[]): string {
  return `{"type":"events","task":${JSON.stringify(task)},"events":[${events.join(',')}]}`
}

function send(socket: WebSocket, frame: StreamFrame): void {
  sendText(socket, JSON.stringify(frame))
}

function sendText(socket: WebSocket, text: string): void {
  if (socket.readyState === socket.OPEN) socket.send(text)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // matches no schema
  }
}
