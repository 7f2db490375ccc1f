import type { AgentParser } from '@corral/agents'
import type { AgentEvent, DaemonClient, OutputEvent, ProcessExitRecord } from '@corral/protocol'
import type { RecordWriter } from '../records/task-records.js'
import { EventBudget, leftOut, type OutputCaps } from './output-caps.js'

export interface FollowedOutput {
  daemon: Pick<DaemonClient, 'readOutput'>
  processId: string
  parser: AgentParser
  log: Pick<RecordWriter, 'write'>
  /** Called with events in their order; the same output gives the same calls' worth of events, however often it is read. */
  onEvents(events: AgentEvent[]): Promise<void>
  /** Hears all of the output, also what is too much to be kept. */
  talk?: { hear(event: OutputEvent): void } | undefined
  caps: OutputCaps
  signal: AbortSignal
}

/**
 * Reads a process's output to its end: events and log of the beginning as it comes, and, where that was not all, of the
 * end once the process has ended. What is kept depends on the output and its length alone. Answers how it ended.
 */
export async function followOutput(options: FollowedOutput): Promise<ProcessExitRecord | undefined> {
  const { daemon, processId, parser, log, talk, caps, signal } = options
  const budget = new EventBudget(caps.eventHeadBytes)
  let parsed = 0
  let length = 0
  let exit: ProcessExitRecord | undefined
  for await (const event of daemon.readOutput(processId, { signal })) {
    talk?.hear(event)
    if (event.type === 'exit') {
      exit = event.exit
      break
    }
    // The daemon keeps more than the caps here on either side, so what it dropped is left out anyway.
    if (event.type === 'gap') continue
    const head = event.data.subarray(0, Math.max(0, caps.logHeadBytes - event.offset))
    length = event.offset + event.data.length
    if (head.length === 0) continue
    await log.write(head)
    if (budget.isSpent) continue
    parsed = event.offset + head.length
    const kept = budget.take(parser.push(head, event.stream))
    if (kept.length > 0) await options.onEvents(kept)
  }
  if (exit && (budget.isSpent || parsed < length))
    await readTail(options, { parsed, length, cutBytes: budget.leftOutBytes })
  return exit
}

/** The end of an output of which the beginning alone was as much as is kept. */
async function readTail(
  { daemon, processId, parser, log, onEvents, caps, signal }: FollowedOutput,
  { parsed, length, cutBytes }: { parsed: number; length: number; cutBytes: number },
): Promise<void> {
  const logStart = Math.max(caps.logHeadBytes, length - caps.logTailBytes)
  const eventStart = Math.max(parsed, length - caps.eventTailBytes)
  if (logStart > caps.logHeadBytes)
    await log.write(Buffer.from(`\n[${logStart - caps.logHeadBytes} bytes of output are left out here]\n`))
  const waiting = parser.skip()
  await onEvents([...(cutBytes > 0 ? [] : waiting), leftOut(eventStart - parsed + cutBytes, 'of the output')])
  // Short lines of an agent that should print JSON are an event each: the end too has its bound.
  const budget = new EventBudget(caps.eventHeadBytes)
  const offset = Math.min(logStart, eventStart, length)
  for await (const event of daemon.readOutput(processId, { offset, signal })) {
    if (event.type === 'exit') return
    if (event.type === 'gap') continue
    const from = (start: number): Uint8Array => event.data.subarray(Math.max(0, start - event.offset))
    const forLog = from(logStart)
    if (forLog.length > 0) await log.write(forLog)
    const forEvents = from(eventStart)
    if (forEvents.length === 0) continue
    const events = budget.take(parser.push(forEvents, event.stream))
    if (events.length > 0) await onEvents(events)
  }
}
