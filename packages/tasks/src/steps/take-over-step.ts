import { mergeWarnings } from '@corral/protocol'
import { errorCode } from '@corral/resources'
import { TaskError } from '../task-error.js'
import { branchOf } from '../task-state/branch-of.js'
import { acceptBundle } from './accepted-bundle.js'
import type { Step } from './step.js'

/** Takes the result of the task this one repeats over, so that it can be pushed without an agent running again. */
export const takeOverStep: Step = async (context) => {
  const { task, record, former, signal } = context
  const { retry, retryOf, baseBranch } = task.spec
  const commit = retry?.commit
  if (!former || !commit || !(await former.find('bundle-out')))
    throw new TaskError('InvalidTask', `the commits of task ${retryOf ?? ''} are no longer kept`, {
      hint: 'Retry with `from` set to `agent`, or `start`.',
    })
  await record.write('bundle-out', former.read('bundle-out'), { signal })
  for (const name of await former.list('artifact'))
    await record.write(`artifact/${name}`, former.read(`artifact/${name}`), { signal })
  for (const oid of await former.list('lfs')) await record.write(`lfs/${oid}`, former.read(`lfs/${oid}`), { signal })
  const accepted = await acceptBundle(context, commit).catch((error: unknown) => {
    if (errorCode(error) !== 'ResultRejected') throw error
    throw new TaskError('InvalidTask', `the commits of task ${retryOf ?? ''} can no longer be used: ${String(error)}`, {
      hint: 'Retry with `from` set to `agent`, or `start`.',
      cause: error,
    })
  })
  const artifacts = await record.list('artifact')
  // What was said of the work when it came out of its sandbox is true of it still. Its patch was made anew.
  const said = (await context.findRepeated())?.status?.warnings ?? []
  const warnings = mergeWarnings(
    said.filter(({ code }) => code !== 'DiffLeftOut'),
    accepted.warnings,
  )
  return {
    condition: 'ResultCollected',
    reason: 'TakenOver',
    message: `commit ${commit.slice(0, 12)} of task ${retryOf ?? ''}`,
    status: {
      ...accepted.status,
      outcome: retry.partial ? 'partial' : 'changes',
      branch: branchOf(task),
      ...(retry.baseCommit ? { baseCommit: retry.baseCommit } : {}),
      ...(baseBranch ? { baseBranch } : {}),
      ...(artifacts.length > 0 ? { artifacts } : {}),
      ...(warnings.length > 0 ? { warnings } : {}),
    },
    events: [
      ...warnings.map((warning) => ({ type: 'warning' as const, ...warning })),
      {
        type: 'stage',
        stage: 'result',
        state: 'finished',
        detail: `taken over from ${retryOf ?? ''}, ${accepted.detail}`,
      },
    ],
  }
}
