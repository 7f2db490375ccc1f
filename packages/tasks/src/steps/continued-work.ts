import type { ContinuedWork } from '../repository/continued-base.js'
import { branchOf } from '../task-state/branch-of.js'
import type { StepContext } from './step.js'

/** The work a task goes on from; undefined where the former task left none, or there is no former one. */
export async function continuedWork({
  task,
  continued,
}: Pick<StepContext, 'task' | 'continued'>): Promise<ContinuedWork | undefined> {
  const { commit, branch, baseCommit } = task.spec.continues ?? {}
  if (!commit) return undefined
  const hasResult = baseCommit !== undefined && (await continued?.find('bundle-out')) !== undefined
  return {
    commit,
    branch,
    takesAdditions: branchOf(task) === branch,
    result: hasResult && continued ? { bundlePath: await continued.localFile('bundle-out'), baseCommit } : undefined,
  }
}
