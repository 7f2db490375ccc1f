import { OutputJoiner } from '@corral/agents'
import type { AgentEvent, OutputStream, TaskEventBody } from '@corral/protocol'
import type { EventLog } from '../event-log/event-log.js'
import { EventBudget, leftOut, outputCaps } from './output-caps.js'

/** Tells what a check writes while it runs. */
export interface CheckOutput {
  push(stream: OutputStream, data: Uint8Array): Promise<void>
  end(): Promise<void>
}

/**
 * Makes events of a check's output as it comes. A check that is joined again after a restart is read from its beginning and
 * gives the same events: those that the log holds already are not told twice.
 */
export async function checkOutput(
  eventLog: Pick<EventLog, 'append' | 'read'>,
  options: { uid: string; check: string; round: number; isJoined: boolean },
): Promise<CheckOutput> {
  const { uid, check } = options
  const joiners = { stdout: new OutputJoiner('stdout'), stderr: new OutputJoiner('stderr') }
  const budget = new EventBudget(outputCaps.checkEventBytes)
  let told = options.isJoined ? await toldEvents(eventLog, options) : 0
  const emit = async (events: AgentEvent[]): Promise<void> => {
    const kept = budget.take(events)
    const skipped = Math.min(told, kept.length)
    told -= skipped
    const fresh = kept.slice(skipped).map((event) => ({ ...event, stage: 'checks', check }) as TaskEventBody)
    if (fresh.length > 0) await eventLog.append(uid, fresh)
  }
  return {
    push: (stream, data) => emit(joiners[stream].push(data)),
    async end() {
      for (const joiner of Object.values(joiners)) await emit(joiner.end())
      if (budget.leftOutBytes > 0) await eventLog.append(uid, [leftOut(budget.leftOutBytes, 'of the check’s output')])
    },
  }
}

/** How many events of this round are of this check. The round may have been told to its end before it was recorded. */
async function toldEvents(
  eventLog: Pick<EventLog, 'read'>,
  { uid, check, round }: { uid: string; check: string; round: number },
): Promise<number> {
  let count = 0
  for await (const event of eventLog.read(uid)) {
    if (event.type === 'check_round' && event.round < round) count = 0
    if (event.type === 'output' && event.check === check) count += 1
  }
  return count
}
