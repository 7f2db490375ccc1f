import type { TaskEvent } from '@corral/protocol'

/** What the Activity tab shows: events gathered into the things a person reads. */
export type FeedItem =
  | {
      readonly kind: 'stage'
      readonly key: number
      readonly stage: string
      readonly state: string
      readonly detail: string
      readonly time: string
    }
  | {
      readonly kind: 'message'
      readonly key: number
      readonly role: string
      readonly text: string
      readonly isThinking: boolean
      readonly time: string
    }
  | {
      readonly kind: 'tool'
      readonly key: number
      readonly callId: string
      readonly tool: string
      readonly summary: string
      readonly input: string
      readonly result?: { readonly text: string; readonly isError: boolean }
      readonly time: string
    }
  | {
      readonly kind: 'output'
      readonly key: number
      readonly stream: 'stdout' | 'stderr'
      readonly text: string
      readonly lines: number
      readonly time: string
    }
  | {
      readonly kind: 'file'
      readonly key: number
      readonly path: string
      readonly change: string
      readonly time: string
    }
  | {
      readonly kind: 'plan'
      readonly key: number
      readonly revision: number
      readonly text: string
      readonly time: string
    }
  | {
      readonly kind: 'decision'
      readonly key: number
      readonly verdict: string
      readonly text: string
      readonly time: string
    }
  | {
      readonly kind: 'warning' | 'error'
      readonly key: number
      readonly code: string
      readonly text: string
      readonly time: string
    }
  | {
      readonly kind: 'result'
      readonly key: number
      readonly event: Extract<TaskEvent, { type: 'result' }>
      readonly time: string
    }

export interface Feed {
  readonly items: readonly FeedItem[]
  /** The last sequence taken in; older ones are known and dropped. */
  readonly sequence: number
  /** When the last event of any kind was written: an item of output keeps the time of its first line. */
  readonly lastTime?: string
}

export const emptyFeed: Feed = { items: [], sequence: 0 }

/** One item of output is folded in the page beyond this; more than that starts a new item. */
const maxOutputCharacters = 64 * 1024

/** Takes events in. The same event twice changes nothing, so a reconnect may send again what is known. */
export function addEvents(feed: Feed, events: readonly TaskEvent[]): Feed {
  const items = [...feed.items]
  let { sequence, lastTime } = feed
  for (const event of events) {
    if (event.sequence <= sequence) continue
    sequence = event.sequence
    lastTime = event.time
    add(items, event)
  }
  return lastTime === undefined || sequence === feed.sequence ? feed : { items, sequence, lastTime }
}

function add(items: FeedItem[], event: TaskEvent): void {
  const { sequence: key, time } = event
  switch (event.type) {
    case 'stage': {
      // Progress of a stage replaces the last: a clone that reports every second stays one line.
      const last = items.at(-1)
      const item: FeedItem = {
        kind: 'stage',
        key,
        stage: event.stage,
        state: event.state,
        detail: event.detail ?? '',
        time,
      }
      if (last?.kind === 'stage' && last.stage === event.stage && last.state !== 'failed')
        items[items.length - 1] = { ...item, key: last.key }
      else {
        finishQuietStage(items)
        items.push(item)
      }
      return
    }
    case 'message':
      items.push({
        kind: 'message',
        key,
        role: event.role,
        text: event.text,
        isThinking: event.thinking ?? false,
        time,
      })
      return
    case 'tool_call':
      items.push({
        kind: 'tool',
        key,
        callId: event.call_id,
        tool: event.tool,
        summary: event.summary,
        input: event.input ?? '',
        time,
      })
      return
    case 'tool_result': {
      const at = items.findLastIndex((item) => item.kind === 'tool' && item.callId === event.call_id && !item.result)
      const call = items[at]
      if (call?.kind === 'tool') items[at] = { ...call, result: { text: event.text, isError: event.is_error } }
      return
    }
    case 'file_changed':
      items.push({ kind: 'file', key, path: event.path, change: event.change, time })
      return
    case 'output': {
      const last = items.at(-1)
      const lines = countLines(event.text)
      if (last?.kind === 'output' && last.stream === event.stream && last.text.length < maxOutputCharacters)
        items[items.length - 1] = { ...last, text: last.text + event.text, lines: last.lines + lines }
      else items.push({ kind: 'output', key, stream: event.stream, text: event.text, lines, time })
      return
    }
    case 'plan':
      items.push({ kind: 'plan', key, revision: event.revision, text: event.text, time })
      return
    case 'plan_decision':
      items.push({ kind: 'decision', key, verdict: event.verdict, text: event.remark ?? '', time })
      return
    case 'warning':
      items.push({ kind: 'warning', key, code: event.code, text: event.message, time })
      return
    case 'error':
      items.push({ kind: 'error', key, code: event.code ?? '', text: event.message, time })
      return
    case 'result':
      items.push({ kind: 'result', key, event, time })
      return
    default:
      // Usage and calls of models are counted elsewhere; a newer server may have types this page does not know.
      return
  }
}

/** Claim and set-up write no end of their own: another stage begins when they are done. */
function finishQuietStage(items: FeedItem[]): void {
  const at = items.findLastIndex(({ kind }) => kind === 'stage')
  const item = items[at]
  if (item?.kind !== 'stage' || item.state === 'failed' || (item.stage !== 'claim' && item.stage !== 'setup')) return
  items[at] = { ...item, state: 'finished' }
}

function countLines(text: string): number {
  let lines = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines += 1
  return lines
}
