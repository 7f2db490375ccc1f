import { mergeWarnings, type TaskEventBody, type TaskWarning } from '@corral/protocol'
import { type AgentTaskStatus, errorCode } from '@corral/resources'
import { quarantineLimits } from '../repository/quarantine.js'
import type { ExpectedResult } from '../repository/repository.js'
import { type CollectedWork, scratchFiles } from '../sandbox/collected-work.js'
import { TaskError } from '../task-error.js'
import { branchOf } from '../task-state/branch-of.js'
import { type AcceptedBundle, acceptBundle, baseCommitOf, expectBundle } from './accepted-bundle.js'
import { removeCheckpoint } from './checkpoints.js'
import {
  archiveName,
  archiveWork,
  bounded,
  collectFiles,
  collectName,
  collectWork,
  isEvictedForDisk,
} from './collect-work.js'
import { takeKeptBundle } from './kept-bundle.js'
import { keptLfsObjects } from './lfs-step.js'
import { sayingWhere } from './no-room.js'
import { checkpointInstead, salvageStep } from './salvage-step.js'
import { keepSigned, signedCommit } from './signed-result.js'
import type { Step, StepContext, StepOutcome } from './step.js'
import { takeArtifacts } from './take-artifacts.js'

/** The artifact with what the agent made beside the result: other branches, stashes, replaced history. */
const keptBundleName = 'kept.bundle'

/** The artifact with commits that were not accepted. */
const rejectedBundleName = 'rejected.bundle'

/** The artifact with files that could not become part of the result. */
const leftOutName = 'left-out.tar'

/** Errors that say the sandbox is gone with its disk. */
const lostCodes = new Set(['SandboxDeleted', 'SandboxFailed', 'SandboxLost'])

/**
 * Takes what the agent did out of the sandbox and checks it outside. A failure says where the work is: in the record as
 * an archive, or, where not even that worked, in the sandbox, which is then kept.
 */
export const collectStep: Step = collectStepWithin({ keptBytes: quarantineLimits.bundleBytes })

/** The same with other limits. */
export function collectStepWithin(limits: CollectLimits): Step {
  return (context) => collectOrKeep(context, limits)
}

interface CollectLimits {
  /** For what is kept beside the result. */
  keptBytes: number
  /** For the agent's repository, before its files alone are looked at. */
  repositoryMs?: number
}

async function collectOrKeep(context: StepContext, limits: CollectLimits): Promise<StepOutcome> {
  try {
    return await collect(context, limits)
  } catch (error) {
    if (context.signal.aborted) throw error
    if (lostCodes.has(errorCode(error) ?? '')) return salvageStep(context)
    if (!(error instanceof TaskError)) throw error
    const isSafe = await archiveWork(context)
    const instead = isSafe ? undefined : await checkpointInstead(context, `${error.message}; ${whereWorkIs(context)}`)
    if (instead) return instead
    throw await withWorkKept(error, context, isSafe)
  }
}

/** The gits that check the result start while the sandbox makes it, and hold up nothing before. */
async function collect(context: StepContext, limits: CollectLimits): Promise<StepOutcome> {
  let expecting: Promise<ExpectedResult | undefined> | undefined
  const expect = (): void => {
    expecting ??= expectBundle(context)
  }
  try {
    return await collectExpected(context, limits, { expect, expected: async () => expecting })
  } finally {
    await (await expecting)?.close()
  }
}

async function collectExpected(
  context: StepContext,
  { keptBytes, repositoryMs }: CollectLimits,
  { expect, expected }: { expect: () => void; expected: () => Promise<ExpectedResult | undefined> },
): Promise<StepOutcome> {
  const collected = await collectWork(context, baseCommitOf(context), {
    firstTimeoutMs: repositoryMs,
    onStarted: expect,
  })
  const beside = collected.kept ? await takeBeside(context, keptBytes) : []
  const isLeftThere = !(await takeLeftOut(context, collected, keptBytes))
  const { repository } = await context.findWorkspace()
  const isGone = isEvictedForDisk(context.task.status)
  const place = { taskName: context.task.metadata.name, repository, isGone }
  const warnings = collected.warnings.map((warning) => sayingWhere(warning, place))
  const found = [...warnings, ...beside, ...(await takeArtifacts(context))]
  if (!collected.changed) {
    const artifacts = await keptArtifacts(context)
    return {
      condition: 'ResultCollected',
      reason: 'NoChanges',
      message: 'nothing changed',
      status: {
        outcome: 'no_changes',
        ...keptForSize(context, found, isLeftThere),
        ...artifacts,
        ...warningsFor(context, found),
      },
      events: [...warningEvents(found), { type: 'stage', stage: 'result', state: 'finished', detail: 'no changes' }],
    }
  }
  const accepted = await takeBundle(context, collected, await expected())
    .then((bundle) => ({ ...bundle, isLeftOutTaken: true }))
    .catch((error: unknown) => acceptFiles(context, error, keptBytes))
  const all = withoutLeftOut([...found, ...accepted.warnings])
  const artifacts = await keptArtifacts(context)
  await removeCheckpoint(context)
  return {
    condition: 'ResultCollected',
    reason: 'Accepted',
    message: `commit ${accepted.status.commit?.slice(0, 12) ?? ''}`,
    status: {
      outcome: 'changes',
      ...accepted.status,
      ...keptForSize(context, all, isLeftThere || !accepted.isLeftOutTaken),
      ...artifacts,
      ...warningsFor(context, all),
    },
    events: [...warningEvents(all), { type: 'stage', stage: 'result', state: 'finished', detail: accepted.detail }],
  }
}

async function takeBundle(
  context: StepContext,
  { commit }: CollectedWork,
  expected?: ExpectedResult,
): Promise<AcceptedBundle> {
  const { signal, record } = context
  const { daemon } = await context.openSandbox()
  const { scratch } = await context.findWorkspace()
  const bundle = daemon.readFileStream(scratchFiles.resultBundle(scratch, collectName), { signal })
  await record.write('bundle-out', bounded(bundle, quarantineLimits.bundleBytes), { signal })
  return acceptBundle(context, commit, expected)
}

/** Limits that a result may keep to without its largest files. */
const sizeLimits = new Set<unknown>(['objectBytes', 'bundleBytes', 'changedBytes', 'memoryBytes', 'cpuSeconds'])

/**
 * A history that is not accepted, for one damaged commit, one file that git refuses or one that is too large, may have files
 * that are. The commits stay as they came, as a file for people: a bundle, or, where that is what was too large, with
 * everything else in an archive of the work tree.
 */
async function acceptFiles(
  context: StepContext,
  error: unknown,
  limitBytes: number,
): Promise<AcceptedBundle & { isLeftOutTaken: boolean }> {
  const { signal, record } = context
  if (!(error instanceof TaskError)) throw error
  const isTooLarge = errorCode(error) === 'ResultTooLarge' && sizeLimits.has(error.details.limit)
  if (!isTooLarge && errorCode(error) !== 'ResultRejected') throw error
  // Not even an archive holds it: the sandbox stays, and the task says why, as for any work that cannot be taken out.
  if (isTooLarge && !(await archiveWork(context))) throw error
  if (!isTooLarge) await record.write(`artifact/${rejectedBundleName}`, record.read('bundle-out'), { signal })
  const collected = await collectFiles(context, baseCommitOf(context), error)
  if (!collected?.changed) throw error
  const accepted = await takeBundle(context, collected).catch((again: unknown) => {
    throw signal.aborted ? again : error
  })
  const isLeftOutTaken = await takeLeftOut(context, collected, limitBytes)
  return { ...accepted, isLeftOutTaken, warnings: [...collected.warnings, ...accepted.warnings] }
}

const leftOutForSize = (warnings: readonly TaskWarning[]): (string | undefined)[] =>
  warnings.filter(({ code }) => code === 'FileTooLarge').map(({ path }) => path)

/** What the first look at the work said of files that the result does not have in the end. */
function withoutLeftOut(warnings: readonly TaskWarning[]): TaskWarning[] {
  const leftOut = leftOutForSize(warnings)
  return warnings.filter(({ code, path }) => code !== 'LargeFile' || !leftOut.includes(path))
}

/** What was left out for its size is in the archive of the work tree; where there is none, only in the sandbox. */
function keptForSize(
  { task }: StepContext,
  warnings: readonly TaskWarning[],
  isLeftThere: boolean,
): Pick<AgentTaskStatus, 'sandbox'> {
  const { sandbox } = task.status ?? {}
  const isArchived = warnings.some(({ code }) => code === 'CommitsNotAccepted')
  const onlyThere: TaskWarning['code'][] = isEvictedForDisk(task.status)
    ? ['KeptRefsLeftOut']
    : ['KeptRefsLeftOut', 'NoRoomLeft']
  const isLeftOut = leftOutForSize(warnings).length > 0 || warnings.some(({ code }) => onlyThere.includes(code))
  const isNeeded = isLeftOut || (isLeftThere && !isEvictedForDisk(task.status))
  return sandbox && isNeeded && !isArchived ? { sandbox: { ...sandbox, kept: true } } : {}
}

async function takeBeside(context: StepContext, limitBytes: number): Promise<TaskWarning[]> {
  const { daemon } = await context.openSandbox()
  const { scratch } = await context.findWorkspace()
  const path = scratchFiles.keptBundle(scratch, collectName)
  return takeKeptBundle(context, { daemon, path, part: `artifact/${keptBundleName}`, limitBytes })
}

/**
 * Keeps the files that are neither in the result nor in what is kept beside it. False where there are such files and they are
 * in the sandbox alone: no room for their archive there, or one that is larger than what is kept of a task.
 */
async function takeLeftOut(context: StepContext, { leftOut }: CollectedWork, limitBytes: number): Promise<boolean> {
  const { record, signal } = context
  if (leftOut !== 'yes') return leftOut === 'no'
  const { daemon } = await context.openSandbox()
  const { scratch } = await context.findWorkspace()
  const content = daemon.readFileStream(scratchFiles.leftOut(scratch, collectName), { signal })
  try {
    await record.write(`artifact/${leftOutName}`, bounded(content, limitBytes), { signal })
    return true
  } catch (error) {
    if (signal.aborted || errorCode(error) !== 'ResultTooLarge') throw error
    await record.remove(`artifact/${leftOutName}`)
    return false
  }
}

async function keptArtifacts({ record }: StepContext): Promise<{ artifacts?: string[] }> {
  const artifacts = await record.list('artifact')
  return artifacts.length > 0 ? { artifacts } : {}
}

const whereWorkIs = ({ task }: StepContext): string =>
  `its files are in the sandbox ${task.status?.sandbox?.sandboxName ?? ''}, which is kept until the task is deleted`

/** The same failure with what became of the work, for the record. */
async function withWorkKept(error: TaskError, context: StepContext, isSafe: boolean): Promise<TaskError> {
  const { sandbox } = context.task.status ?? {}
  const where = isSafe ? `its files are kept as the artifact ${archiveName}` : whereWorkIs(context)
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
