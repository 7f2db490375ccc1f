import { CorralError } from './corral-error.js'
import { type TaskEvent, taskEventHeadSchema } from './task-events.js'

/** The query of a request; nothing where no value is given. */
export function searchOf(query: object): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

/** Where the API has a task. */
export const pathOf = (id: string): string => `/tasks/${encodeURIComponent(id)}`

/** Types this client does not know yet are passed on: a newer server may have more of them. */
export function parseEvent(line: string): TaskEvent {
  const json = parseJson(line)
  if (taskEventHeadSchema.safeParse(json).success) return json as TaskEvent
  throw new CorralError('ProtocolViolation', 'a line of the event stream is not an event')
}

/** Undefined for what is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // What is not JSON matches no schema.
    return undefined
  }
}
