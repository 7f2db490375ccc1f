import { type TaskWarning, taskWarning } from '@corral/protocol'
import type { AgentTaskStatus } from '@corral/resources'
import { isInPlace } from '../held/hold.js'
import type { ExpectedResult } from '../repository/repository.js'
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

/**
 * Checks the bundle `bundle-out` of the task's record outside the sandbox and keeps its change as the task's diff. `expected` is
 * what `expectBundle` got ready for it.
 */
export async function acceptBundle(
  context: StepContext,
  claimedCommit: string,
  expected?: ExpectedResult,
): Promise<AcceptedBundle> {
  const { task, record, signal } = context
  await ensureBase(context)
  const baseCommit = baseCommitOf(context)
  const accepted = await (expected ?? context.repository).accept({
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

/** Gets ready for a bundle that the sandbox still makes. Undefined where that cannot be done ahead: `acceptBundle` does without. */
export async function expectBundle(context: StepContext): Promise<ExpectedResult | undefined> {
  const { task, record, signal, log } = context
  // The mirror may not have the base yet.
  if (isInPlace(task)) return undefined
  try {
    return await context.repository.expectResult({
      url: task.spec.repository.url,
      taskDirectory: await record.workDirectory(),
      baseCommit: baseCommitOf(context),
      signal,
    })
  } catch (error) {
    log.debug('nothing was got ready for the result', { error })
    return undefined
  }
}

/** The commit the work builds on: recorded when the repository was brought in, or that of the task this one repeats. */
export function baseCommitOf({ task }: Pick<StepContext, 'task'>): string {
  const commit = task.status?.baseCommit ?? task.spec.retry?.baseCommit
  if (!commit) throw new TaskError('InternalError', 'the base commit was not recorded')
  return commit
}
