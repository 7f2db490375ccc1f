import { type TaskWarning, taskWarning } from '@corral/protocol'
import type { AgentTaskStatus } from '@corral/resources'
import { TaskError } from '../task-error.js'
import { ensureBase } from './base-in-record.js'
import { takeLfsObjects } from './lfs-step.js'
import type { StepContext } from './step.js'

export interface AcceptedBundle {
  /** What belongs into the status of the task. */
  status: Pick<AgentTaskStatus, 'commit' | 'diffStat'>
  /** For people: the commit and the size of the change. */
  detail: string
  warnings: TaskWarning[]
}

/** Checks the bundle `bundle-out` of the task's record outside the sandbox and keeps its change as the task's diff. */
export async function acceptBundle(context: StepContext, claimedCommit: string): Promise<AcceptedBundle> {
  const { task, record, signal } = context
  await ensureBase(context)
  const baseCommit = baseCommitOf(context)
  const accepted = await context.repository.accept({
    url: task.spec.repository.url,
    taskDirectory: await record.workDirectory(),
    bundlePath: await record.localFile('bundle-out'),
    baseCommit,
    claimedCommit,
    lfs: task.spec.repository.lfs,
    signal,
  })
  await (accepted.patchPath ? record.keepFile('diff', accepted.patchPath) : record.remove('diff'))
  const missing = await takeLfsObjects(context, accepted.lfs)
  const { filesChanged, insertions, deletions } = accepted.diffStat
  return {
    status: { commit: accepted.commit, diffStat: accepted.diffStat },
    detail: `${accepted.commit.slice(0, 12)}: ${filesChanged} ${filesChanged === 1 ? 'file' : 'files'} changed, +${insertions} -${deletions}`,
    warnings: [...(accepted.patchPath ? [] : [taskWarning('DiffLeftOut')]), ...missing],
  }
}

/** The commit the work builds on: recorded when the repository was brought in, or that of the task this one repeats. */
export function baseCommitOf({ task }: Pick<StepContext, 'task'>): string {
  const commit = task.status?.baseCommit ?? task.spec.retry?.baseCommit
  if (!commit) throw new TaskError('InternalError', 'the base commit was not recorded')
  return commit
}
