import { mergeWarnings, type TaskEventBody, type TaskWarning } from '@corral/protocol'
import { errorCode } from '@corral/resources'
import { quarantineLimits } from '../repository/quarantine.js'
import { takeArtifacts } from '../results/take-artifacts.js'
import { type CollectedWork, scratchFiles } from '../sandbox/collected-work.js'
import { TaskError } from '../task-error.js'
import { acceptBundle, baseCommitOf } from './accepted-bundle.js'
import { removeCheckpoint } from './checkpoints.js'
import { archiveName, archiveWork, bounded, collectName, collectWork } from './collect-work.js'
import { keptLfsObjects } from './lfs-step.js'
import { salvageStep } from './salvage-step.js'
import { keepSigned, signedCommit } from './signed-result.js'
import { branchOf, type Step, type StepContext, type StepOutcome } from './step.js'

/** The artifact with what the agent made beside the result: other branches, stashes, replaced history. */
const keptBundleName = 'kept.bundle'

/** Errors that say the sandbox is gone with its disk. */
const lostCodes = new Set(['SandboxDeleted', 'SandboxFailed', 'SandboxLost'])

/**
 * Takes what the agent did out of the sandbox and checks it outside. A failure says where the work is: in the record as
 * an archive, or, where not even that worked, in the sandbox, which is then kept.
 */
export const collectStep: Step = async (context) => {
  try {
    return await collect(context)
  } catch (error) {
    if (context.signal.aborted) throw error
    if (lostCodes.has(errorCode(error) ?? '')) return salvageStep(context)
    if (!(error instanceof TaskError)) throw error
    throw await withWorkKept(error, context)
  }
}

async function collect(context: StepContext): Promise<StepOutcome> {
  const { signal, record } = context
  const collected = await collectWork(context, baseCommitOf(context))
  await takeKeptBundle(context, collected)
  const found = [...collected.warnings, ...(await takeArtifacts(context))]
  const artifacts = await keptArtifacts(context)
  if (!collected.changed) {
    return {
      condition: 'ResultCollected',
      reason: 'NoChanges',
      message: 'nothing changed',
      status: { outcome: 'no_changes', ...artifacts, ...warningsFor(context, found) },
      events: [...warningEvents(found), { type: 'stage', stage: 'result', state: 'finished', detail: 'no changes' }],
    }
  }
  const { daemon } = await context.openSandbox()
  const { scratch } = await context.findWorkspace()
  const bundle = daemon.readFileStream(scratchFiles.resultBundle(scratch, collectName), { signal })
  await record.write('bundle-out', bounded(bundle, quarantineLimits.bundleBytes), { signal })
  const accepted = await acceptBundle(context, collected.commit)
  await removeCheckpoint(context)
  const warnings = [...found, ...accepted.warnings]
  return {
    condition: 'ResultCollected',
    reason: 'Accepted',
    message: `commit ${collected.commit.slice(0, 12)}`,
    status: {
      outcome: 'changes',
      ...accepted.status,
      ...artifacts,
      ...warningsFor(context, warnings),
    },
    events: [
      ...warningEvents(warnings),
      { type: 'stage', stage: 'result', state: 'finished', detail: accepted.detail },
    ],
  }
}

/** What is not part of the result is kept unread: a bundle is a file until somebody fetches from it. */
async function takeKeptBundle(context: StepContext, { kept }: CollectedWork): Promise<void> {
  if (!kept) return
  const { daemon } = await context.openSandbox()
  const { scratch } = await context.findWorkspace()
  const bundle = daemon.readFileStream(scratchFiles.keptBundle(scratch, collectName), { signal: context.signal })
  await context.record.write(`artifact/${keptBundleName}`, bounded(bundle, quarantineLimits.bundleBytes), {
    signal: context.signal,
  })
}

async function keptArtifacts({ record }: StepContext): Promise<{ artifacts?: string[] }> {
  const artifacts = await record.list('artifact')
  return artifacts.length > 0 ? { artifacts } : {}
}

/** The same failure with what became of the work, for the record. */
async function withWorkKept(error: TaskError, context: StepContext): Promise<TaskError> {
  const isSafe = await archiveWork(context)
  const { sandbox } = context.task.status ?? {}
  const where = isSafe
    ? `its files are kept as the artifact ${archiveName}`
    : `its files are in the sandbox ${sandbox?.sandboxName ?? ''}, which is kept until the task is deleted`
  const status = isSafe
    ? { artifacts: await context.record.list('artifact') }
    : sandbox
      ? { sandbox: { ...sandbox, kept: true } }
      : {}
  return new TaskError(errorCode(error) ?? 'ResultFailed', `${error.message}; ${where}`, {
    cause: error,
    ...(error.hint ? { hint: error.hint } : {}),
    details: { ...error.details, status },
  })
}

function warningsFor({ task }: StepContext, warnings: readonly TaskWarning[]): { warnings?: TaskWarning[] } {
  const all = mergeWarnings(task.status?.warnings ?? [], warnings)
  return all.length > 0 ? { warnings: all } : {}
}

function warningEvents(warnings: readonly TaskWarning[]): TaskEventBody[] {
  return mergeWarnings([], warnings).map((warning) => ({ type: 'warning', ...warning }))
}

/** Pushes outside the sandbox, with the user's credentials. */
export const pushStep: Step = async (context) => {
  const { task } = context
  const accepted = task.status?.commit
  if (!accepted) throw new TaskError('InternalError', 'the result was not recorded')
  const commit = await signedCommit(context, accepted)
  const branch = branchOf(task)
  await context.repository.publish({
    url: task.spec.repository.url,
    taskDirectory: await context.record.workDirectory(),
    commit,
    branch,
    replaces: task.spec.retry?.replaces ?? [],
    lfs: await keptLfsObjects(context, baseCommitOf(context)),
    signal: context.signal,
  })
  await keepSigned(context)
  return {
    condition: 'Pushed',
    reason: 'Pushed',
    message: `${commit.slice(0, 12)} is on ${branch}`,
    status: { pushed: true, branch, commit },
    events: [{ type: 'stage', stage: 'push', state: 'finished', detail: `${commit.slice(0, 12)} is on ${branch}` }],
  }
}
