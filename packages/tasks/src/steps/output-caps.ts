import type { AgentEvent } from '@corral/protocol'

const mebibyte = 1024 * 1024

export interface OutputCaps {
  /** Events made of the agent's output from its beginning; the end of it comes on top. */
  eventHeadBytes: number
  /** Output from its end of which events are made when the beginning alone fills the budget. */
  eventTailBytes: number
  logHeadBytes: number
  logTailBytes: number
  /** Events made of the set-up's output. */
  setupEventBytes: number
  /** Events made of the output of one check in one round. */
  checkEventBytes: number
}

/**
 * What is kept of a task's output: together at most 64 MiB of events and 256 MiB of log. Of more the middle is left out.
 * A byte of output takes up to six in an event (`\u0000`), so the end is held to a sixth of its share.
 */
export const outputCaps: Readonly<OutputCaps> = {
  eventHeadBytes: 32 * mebibyte,
  eventTailBytes: 4 * mebibyte,
  logHeadBytes: 128 * mebibyte,
  logTailBytes: 128 * mebibyte,
  setupEventBytes: 8 * mebibyte,
  checkEventBytes: mebibyte,
}

/** Takes events until their bytes are used up; which ones depends on the events alone. */
export class EventBudget {
  #left: number
  leftOutBytes = 0

  constructor(bytes: number) {
    this.#left = bytes
  }

  get isSpent(): boolean {
    return this.leftOutBytes > 0
  }

  take(events: readonly AgentEvent[]): AgentEvent[] {
    const kept: AgentEvent[] = []
    for (const event of events) {
      const bytes = Buffer.byteLength(JSON.stringify(event))
      if (this.isSpent || bytes > this.#left) {
        this.leftOutBytes += bytes
      } else {
        this.#left -= bytes
        kept.push(event)
      }
    }
    return kept
  }
}

/** The one event that stands where output is missing. */
export function leftOut(bytes: number, what: string): AgentEvent {
  return {
    type: 'message',
    role: 'system',
    text: `about ${bytes} bytes ${what} are left out here: it was more than is kept`,
  }
}
