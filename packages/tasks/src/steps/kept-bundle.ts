import { type DaemonClient, type TaskWarning, taskWarning } from '@corral/protocol'
import { errorCode } from '@corral/resources'
import type { RecordPart } from '../records/task-records.js'
import { bounded } from './collect-work.js'
import type { StepContext } from './step.js'

/**
 * Takes the bundle with what the agent made beside the result into the record, unread: it is only a file until a user
 * fetches from it. One that is too large must not cost the result: it is left out, and the warning says where it still is.
 */
export async function takeKeptBundle(
  { record, signal }: Pick<StepContext, 'record' | 'signal'>,
  { daemon, path, part, limitBytes }: { daemon: DaemonClient; path: string; part: RecordPart; limitBytes: number },
): Promise<TaskWarning[]> {
  try {
    await record.write(part, bounded(daemon.readFileStream(path, { signal }), limitBytes), { signal })
    return []
  } catch (error) {
    if (signal.aborted || errorCode(error) !== 'ResultTooLarge') throw error
    // One of an earlier try would be taken for this one.
    await record.remove(part)
    return [taskWarning('KeptRefsLeftOut', { detail: `more than ${limitBytes} bytes` })]
  }
}
