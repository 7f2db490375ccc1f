import type { TaskEvent } from '@corral/protocol'
import { describeEvent } from './event-printer.js'

/**
 * Turns a task's events into lines as they come, each failure once. A failure is told three times: as an error, by the
 * stage it failed, and as the cause of the end. The first two wait for the next event, and what that says anyway is
 * left out.
 */
export function liveEvents(): { push(event: TaskEvent): string[] } {
  let held: TaskEvent[] = []
  return {
    push(event) {
      if (isFailure(event)) {
        held.push(event)
        return []
      }
      const waiting = held
      held = []
      return [...tellHeld(waiting, event), ...linesOf(event)]
    },
  }
}

type Failure = Extract<TaskEvent, { type: 'error' | 'stage' }>

function isFailure(event: TaskEvent): event is Failure {
  return (event.type === 'error' && event.code !== undefined) || (event.type === 'stage' && event.state === 'failed')
}

function tellHeld(held: readonly TaskEvent[], next: TaskEvent): string[] {
  const cause = next.type === 'result' ? (next.cause?.message ?? '') : ''
  const details = held.map((event) => (event.type === 'stage' ? (event.detail ?? '') : ''))
  return held.flatMap((event) => {
    if (event.type === 'error' && (says(cause, event.message) || details.some((text) => says(text, event.message))))
      return []
    if (event.type === 'stage' && event.detail && says(cause, event.detail)) {
      const { detail: _detail, ...bare } = event
      return linesOf(bare)
    }
    return linesOf(event)
  })
}

/** Whether one text repeats the other; both are cut when they are long. */
function says(one: string, other: string): boolean {
  return one !== '' && other !== '' && (one.includes(other) || other.includes(one))
}

function linesOf(event: TaskEvent): string[] {
  const line = describeEvent(event)
  return line === undefined ? [] : [line]
}
