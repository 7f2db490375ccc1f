import type { StreamFrame, StreamRequest, TaskSummary } from '@corral/protocol'
import { batch, computed, type Signal, signal } from '@preact/signals'
import { type ConnectionInput, type ConnectionState, firstState, step } from '../model/connection.js'
import { addEvents, emptyFeed, type Feed } from '../model/feed.js'
import { revealed } from '../model/hidden-characters.js'
import { loadSession, session } from './api.js'

/** The one WebSocket of this tab, and what came over it. */

const connection = signal<ConnectionState>(firstState(Date.now()))
export const link = computed(() => connection.value.phase)
/** Buttons that write are disabled while this is false: the server cannot be reached. */
export const isLive = computed(() => connection.value.phase === 'live')

export const tasks = signal<ReadonlyMap<string, TaskSummary>>(new Map())
/** Whether the list came at least once. */
export const areTasksKnown = signal(false)

export interface TaskLog extends Feed {
  readonly isEnded: boolean
  readonly failure?: { readonly message: string; readonly hint?: string | undefined } | undefined
}
const noLog: TaskLog = { ...emptyFeed, isEnded: false }
const logs = new Map<string, { log: Signal<TaskLog>; readers: number }>()

let socket: WebSocket | undefined
let cursor = ''
let timer: ReturnType<typeof setTimeout> | undefined
let frames: StreamFrame[] = []

/** Events of a task from the first on, live. Returns how to let go; what was read stays for a return to the page. */
export function readLog(id: string): { log: Signal<TaskLog>; stop: () => void } {
  const entry = logs.get(id) ?? { log: signal(noLog), readers: 0 }
  logs.set(id, entry)
  entry.readers += 1
  if (entry.readers === 1) subscribe(id)
  return {
    log: entry.log,
    stop: () => {
      entry.readers -= 1
      if (entry.readers > 0) return
      send({ type: 'unsubscribe', task: id })
      // The last few stay: going back to a task shows it at once.
      for (const [old, { readers }] of logs) if (readers === 0 && logs.size > 8) logs.delete(old)
    },
  }
}

function subscribe(id: string): void {
  const entry = logs.get(id)
  if (!entry || entry.readers === 0) return
  send({ type: 'subscribe', task: id, after: entry.log.value.sequence })
}

function send(request: StreamRequest): void {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(request))
}

export function startStream(): void {
  connection.value = firstState(Date.now())
  open()
  wake()
}

window.addEventListener('online', () => input('online'))
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') input('visible')
})

function input(kind: ConnectionInput['kind']): void {
  if (session.peek() === null && kind !== 'unauthorized') return
  const [next, actions] = step(connection.value, { kind, nowMs: Date.now(), random: Math.random() })
  connection.value = next
  for (const action of actions) {
    if (action === 'open') open()
    else if (action === 'close') close()
    else for (const id of logs.keys()) subscribe(id)
  }
  wake()
}

function wake(): void {
  clearTimeout(timer)
  const { wakeAtMs } = connection.value
  if (Number.isFinite(wakeAtMs)) timer = setTimeout(() => input('timer'), Math.max(0, wakeAtMs - Date.now()))
}

function open(): void {
  close()
  const url = new URL('/stream', window.location.href)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  if (cursor) url.searchParams.set('cursor', cursor)
  const mine = new WebSocket(url)
  socket = mine
  mine.onopen = () => mine === socket && input('opened')
  mine.onclose = () => {
    if (mine !== socket) return
    input('closed')
    // A handshake that was refused looks like a server that is away: ask which it is.
    loadSession()
      .then(() => session.value === null && input('unauthorized'))
      .catch(() => undefined)
  }
  mine.onmessage = ({ data }: MessageEvent<string>) => {
    if (mine !== socket) return
    frames.push(JSON.parse(data) as StreamFrame) // our own server wrote it
    if (frames.length === 1) schedule(take)
  }
}

function close(): void {
  const old = socket
  socket = undefined
  old?.close()
}

/** Once a frame of the screen; a hidden tab has none, but goes on counting what it received. */
function schedule(work: () => void): void {
  if (document.visibilityState === 'visible') requestAnimationFrame(work)
  else setTimeout(work, 100)
}

function take(): void {
  const received = frames
  frames = []
  batch(() => {
    for (const frame of received) takeFrame(frame)
  })
  input('beat')
}

function takeFrame(frame: StreamFrame): void {
  switch (frame.type) {
    case 'tasks': {
      const next = new Map(frame.reset ? [] : tasks.value)
      for (const task of frame.changed) next.set(task.id, { ...task, title: revealed(task.title) })
      for (const id of frame.removed) next.delete(id)
      tasks.value = next
      cursor = frame.cursor
      areTasksKnown.value = true
      return
    }
    case 'events':
      change(frame.task, (log) => ({ ...log, ...addEvents(log, frame.events), failure: undefined }))
      return
    case 'ended':
      change(frame.task, (log) => ({ ...log, isEnded: true }))
      return
    case 'failed':
      change(frame.task, (log) => ({ ...log, failure: frame.error }))
      return
    case 'beat':
      return
  }
}

function change(id: string, with_: (log: TaskLog) => TaskLog): void {
  const entry = logs.get(id)
  if (entry) entry.log.value = with_(entry.log.value)
}
