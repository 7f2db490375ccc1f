import type { EventLog } from '../event-log/event-log.js'

/** The last thing the agent of a task said, without its reasoning; undefined for one that says nothing, as a command line. */
export async function agentSummary(
  eventLog: Pick<EventLog, 'read'>,
  uid: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  let summary: string | undefined
  for await (const event of eventLog.read(uid, { signal }))
    if (event.type === 'message' && event.role === 'assistant' && !event.thinking) summary = event.text
  return summary
}
