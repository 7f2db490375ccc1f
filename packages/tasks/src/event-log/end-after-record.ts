import { setTimeout as delay } from 'node:timers/promises'
import type { TaskEvent } from '@corral/protocol'

const lookAgainMs = 20

/**
 * Holds the result back until the task's record says the same. The log is written first, so without this a caller who has
 * read the result would be told that the task still runs when it sends a follow-up, retries or releases the sandbox.
 */
export async function* endAfterRecord(
  events: AsyncIterable<TaskEvent>,
  options: { isRecorded(): Promise<boolean>; signal: AbortSignal },
): AsyncGenerator<TaskEvent> {
  for await (const event of events) {
    if (event.type === 'result')
      while (!options.signal.aborted && !(await options.isRecorded())) await delay(lookAgainMs)
    yield event
  }
}
