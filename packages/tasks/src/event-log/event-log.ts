import type { TaskEvent, TaskEventBody } from '@corral/protocol'

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
 * the process; one that failed leaves nothing, and no reader has seen any of it. Sequences start at 1 and have no gaps.
 */
export interface EventLog {
  /** An event of what happens once is left out where the log holds it: the passes that report it are repeated. */
  append(taskUid: string, events: readonly TaskEventBody[], source?: 'agent' | 'platform'): Promise<EventLogTail>
  tail(taskUid: string): Promise<EventLogTail>
  /** Nothing more will come, though the `result` event may be missing for want of room: followers end. */
  end(taskUid: string): void
  /**
   * Events after a sequence, at the reader's own pace. With `follow` it waits for more until the `result` event, `end`,
   * `remove`, `close` or `signal`.
   */
  read(taskUid: string, options?: { after?: number; follow?: boolean; signal?: AbortSignal }): AsyncIterable<TaskEvent>
  remove(taskUid: string): Promise<void>
  close(): Promise<void>
}

/** What makes an event the same as another one, for events of things that happen once; undefined for all others. */
export function onceKey(event: TaskEventBody): string | undefined {
  switch (event.type) {
    case 'stage':
      // A stage begins and ends once; on the way it may tell many things, each once.
      return event.state === 'progress'
        ? `${event.stage}/progress/${event.detail ?? ''}`
        : `${event.stage}/${event.state}`
    case 'check':
      return `check/${event.round}/${event.name}`
    case 'check_round':
      return `check_round/${event.round}`
    default:
      return undefined
  }
}

export function remember(keys: Set<string>, event: TaskEventBody): void {
  const key = onceKey(event)
  if (key !== undefined) keys.add(key)
}
