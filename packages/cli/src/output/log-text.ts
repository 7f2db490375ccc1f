import type { TaskEvent } from '@corral/protocol'
import { describeEvent } from './event-printer.js'

/** Whether output is JSON lines, which people read as events instead, told from its beginning. */
export function isJsonLines(beginning: string): boolean {
  const first = beginning.trimStart().split('\n', 1)[0] ?? ''
  if (!first.startsWith('{')) return false
  try {
    JSON.parse(first)
    return true
  } catch {
    // A first line that is longer than what was read so far.
    return /^\{"[\w-]+":/.test(first) && !beginning.includes('\n')
  }
}

/** An event as a line of the agent's log; undefined for what the agent did not write. */
export function describeLogEvent(event: TaskEvent): string | undefined {
  switch (event.type) {
    case 'output':
      return event.stage ? undefined : describeEvent(event)
    case 'message':
    case 'tool_call':
    case 'tool_result':
    case 'file_changed':
      return describeEvent(event)
    default:
      return undefined
  }
}
