import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { DaemonClient } from '@corral/protocol'
import { isInjectablePath, mergeWarnings } from '@corral/protocol'
import type { AgentTaskFile } from '@corral/resources'
import { identitiesOf } from '../commits/identity.js'
import {
  attachCheckout,
  checkoutProcess,
  requestCheckout,
  usableCheckouts,
} from '../environment/build/checkout-snapshot.js'
import type { BuiltSnapshot } from '../environment/build/choose-snapshot.js'
import { withSnapshot } from '../environment/build/with-snapshot.js'
import {
  type DeclaredEnvironment,
  declaredEnvironment,
  withSandbox,
  withTools,
} from '../environment/declared-environment.js'
import type { SandboxContext } from '../environment/sandbox-context.js'
import { agentRunOf } from '../plan-approval/agent-run.js'
import { resultRef } from '../repository/quarantine.js'
import type { PreparedRepository, PrepareRequest } from '../repository/repository.js'
import { sourceWarnings } from '../repository/source-facts.js'
import { checkedOutMarker } from '../sandbox/checked-out-marker.js'
import { baseRefOf, scratchFiles } from '../sandbox/collected-work.js'
import { runCommand } from '../sandbox/run-command.js'
import { checkoutOntoScript, checkoutScript, excludeScript } from '../sandbox/scripts.js'
import type { Workspace } from '../sandbox/workspace.js'
import { TaskError } from '../task-error.js'
import { branchOf } from '../task-state/branch-of.js'
import { checkOutSubmodules } from './check-out-submodules.js'
import { checkpointParts } from './checkpoints.js'
import { continuedWork } from './continued-work.js'
import { whereFrom } from './fetch-ahead.js'
import { goOnInPlace } from './in-place.js'
import { placeLfsObjects } from './lfs-step.js'
import { progressEvents } from './progress-events.js'
import type { Step, StepContext } from './step.js'

/**
 * Brings the repository in: fetched outside with the user's credentials, carried in as a bundle, cloned from it on a new
 * branch; then the request's files are written. A marker in the sandbox makes a repeat do nothing. In a sandbox that the
 * former task held all of that may be there already.
 */
export const repositoryStep: Step = async (context) => (await goOnInPlace(context)) ?? bringIn(context)

const bringIn: Step = async (context) => {
  const { task, record, signal } = context
  const { continues } = task.spec
  const inherited = continues?.commit === undefined ? continues?.baseCommit : undefined
  const baseCommit = task.status?.baseCommit ?? task.spec.retry?.baseCommit ?? inherited
  let found: DeclaredEnvironment | undefined
  let checkouts: BuiltSnapshot[] = []
  const request: PrepareRequest = {
    ...whereFrom(task),
    submodules: task.spec.repository.submodules,
    lfs: task.spec.repository.lfs,
    environmentFile: task.spec.environmentFile,
    ...(baseCommit ? { baseCommit } : {}),
    ownCommits: task.spec.retry?.replaces ?? [],
    continues: await continuedWork(context),
    taskDirectory: await record.workDirectory(),
    signal,
    onProgress: progressEvents(context),
    async have(base) {
      found = await declaredEnvironment(context, base)
      checkouts = await usableCheckouts(context, found.status.environment)
      return checkouts.map(({ commit }) => commit)
    },
  }
  // The way into the sandbox opens beside the fetch.
  const looking = lookInside(context)
  looking.catch(() => undefined) // looked at below
  let prepared = await context.repository.prepare(request)
  const declared = await withSandbox(found ?? (await declaredEnvironment(context, prepared)), context)
  const { daemon } = await context.openSandbox()
  const workspace = await context.findWorkspace()
  const { isCheckedOut, hasBegun } = await looking
  const checkout = checkouts.find(({ commit }) => commit === prepared.since)
  const attaching = checkout && attachCheckout(context, checkout.name, { hasBegun })
  attaching?.catch(() => undefined) // looked at below
  // A checkout is attached as the repository alone: what is beyond it goes beside it meanwhile.
  let sending = checkout && !isCheckedOut ? sendBundle(context, prepared) : undefined
  sending?.catch(() => undefined) // looked at below
  const environment = await withSnapshot(context, await withTools(declared, daemon, context, prepared.commit), prepared)
  // Everything is sent after all.
  if (prepared.since !== undefined && !(await attaching)) {
    await sending
    sending = undefined
    prepared = await context.repository.prepare({ ...request, have: undefined })
  }
  if (prepared.since === undefined) await record.keepFile('bundle-in', prepared.bundlePath)
  if (!isCheckedOut) {
    await checkOut(context, prepared, {
      isOntoSnapshot: prepared.since !== undefined || environment.status.environment?.snapshot !== undefined,
      work: await bringFormerWork(context, daemon, workspace),
      sending,
    })
    await requestCheckout(context, prepared, environment.status.environment)
  }
  await checkOutSubmodules(daemon, workspace, prepared.submodules, context)
  await injectFiles(daemon, workspace, task.spec.files ?? [], context)
  const { size } = await stat(prepared.bundlePath)
  const beyond = prepared.since ? ` beyond a snapshot of ${prepared.since.slice(0, 12)}` : ''
  const from = prepared.branch ?? 'detached HEAD'
  const baseBranch = task.spec.continues?.baseBranch ?? prepared.branch
  const warnings = [
    ...sourceWarnings(prepared.facts, {
      hasSubmodules: prepared.submodules.length > 0,
      hasLfs: task.spec.repository.lfs === true,
      isPartial: prepared.isPartial,
    }),
    ...environment.warnings,
  ]
  return {
    condition: 'RepositoryReady',
    reason: 'CheckedOut',
    message: `${from} at ${prepared.commit.slice(0, 12)}`,
    status: {
      ...(baseBranch ? { baseBranch } : {}),
      baseCommit: prepared.commit,
      ...environment.status,
      ...(warnings.length > 0 ? { warnings: mergeWarnings(task.status?.warnings ?? [], warnings) } : {}),
    },
    events: [
      ...environment.events,
      ...warnings.map((warning) => ({ type: 'warning' as const, ...warning })),
      {
        type: 'stage',
        stage: 'repository',
        state: 'finished',
        detail: `${from} at ${prepared.commit.slice(0, 12)}, ${size} bytes as a bundle${beyond}, on branch ${branchOf(task)}`,
      },
    ],
  }
}

/** How far an earlier run of this step has come. */
async function lookInside(context: StepContext): Promise<{ isCheckedOut: boolean; hasBegun: boolean }> {
  const { signal } = context
  const { uid } = context.task.metadata
  const { daemon } = await context.openSandbox()
  const [process, marker] = await Promise.all([
    daemon.findProcess(checkoutProcess(uid), { signal }),
    context.findWorkspace().then(({ scratch }) => daemon.statFile(checkedOutMarker(scratch, uid), { signal })),
  ])
  return { isCheckedOut: marker !== undefined, hasBegun: process !== undefined }
}

/**
 * Work of the task this one repeats, or of its own before its sandbox was given back, for an agent that goes on from it. It was accepted once, or goes where it came from: into a sandbox.
 */
async function bringFormerWork(
  { task, record, former, signal }: StepContext,
  daemon: DaemonClient,
  { scratch }: Workspace,
): Promise<{ WORK_BUNDLE: string; WORK_REF: string }> {
  if (agentRunOf(task).number > 1 && (await record.find(checkpointParts.result))) {
    const path = `${scratch}/work.bundle`
    await daemon.writeFile(path, record.read(checkpointParts.result), { mkdirs: true, signal })
    return { WORK_BUNDLE: path, WORK_REF: resultRef }
  }
  if (!task.spec.retry?.commit) return { WORK_BUNDLE: '', WORK_REF: '' }
  if (!former || !(await former.find('bundle-out')))
    throw new TaskError('InvalidTask', `the commits of task ${task.spec.retryOf ?? ''} are no longer kept`, {
      hint: 'Retry without its work.',
    })
  const path = `${scratch}/work.bundle`
  await daemon.writeFile(path, former.read('bundle-out'), { mkdirs: true, signal })
  return { WORK_BUNDLE: path, WORK_REF: resultRef }
}

interface SentBundle {
  bundle: string
  packIndex: string
}

async function sendBundle(context: SandboxContext, prepared: PreparedRepository): Promise<SentBundle> {
  const { signal } = context
  const { daemon } = await context.openSandbox()
  const { scratch } = await context.findWorkspace()
  const bundle = `${scratch}/in.bundle`
  const packIndex = `${scratch}/in.idx`
  await Promise.all([
    daemon.writeFile(bundle, createReadStream(prepared.bundlePath), { mkdirs: true, signal }),
    daemon.writeFile(packIndex, createReadStream(prepared.pack.indexPath), { mkdirs: true, signal }),
  ])
  return { bundle, packIndex }
}

interface CheckOutOptions {
  isOntoSnapshot: boolean
  work: { WORK_BUNDLE: string; WORK_REF: string }
  /** The bundle, where it is on its way already. */
  sending?: Promise<SentBundle> | undefined
}

/** Carries the bundle in and checks it out: in an empty directory, or on the tree of a snapshot. A marker tells that it is done. */
export async function checkOut(
  context: SandboxContext,
  prepared: PreparedRepository,
  { isOntoSnapshot, work, sending }: CheckOutOptions,
): Promise<void> {
  const { task, signal } = context
  const { daemon } = await context.openSandbox()
  const workspace = await context.findWorkspace()
  const { bundle, packIndex } = await (sending ?? sendBundle(context, prepared))
  const { author, committer } = identitiesOf(task)
  const isOther = author.name !== committer.name || author.email !== committer.email
  const lfs = await placeLfsObjects(context, daemon, workspace, prepared.lfs)
  const result = await runCommand(
    daemon,
    checkoutProcess(task.metadata.uid),
    {
      argv: ['/bin/sh', '-c', isOntoSnapshot ? checkoutOntoScript : checkoutScript],
      // It may end with the daemon: it is safe to repeat, and starts sooner.
      keep: 'memory',
      env: {
        BUNDLE: bundle,
        BASE_REF: baseRefOf(prepared.commit),
        BASE_COMMIT: prepared.commit,
        BASE_BRANCH: prepared.branch ?? '',
        SHALLOW: (await context.repository.shallowCommits(task.spec.repository.url)).join('\n'),
        PARTIAL: prepared.isPartial ? 'yes' : '',
        USES_LFS: prepared.facts.usesLfs ? 'yes' : '',
        PACK_NAME: prepared.pack.name,
        PACK_OFFSET: String(prepared.pack.offsetBytes),
        PACK_INDEX: packIndex,
        NEW_BRANCH: branchOf(task),
        REPO: workspace.repository,
        MARKER: checkedOutMarker(workspace.scratch, task.metadata.uid),
        REFS: scratchFiles.refs(workspace.scratch),
        ...work,
        ...lfs,
        AUTHOR_NAME: author.name,
        AUTHOR_EMAIL: author.email,
        ...(isOther ? { COMMITTER_NAME: committer.name, COMMITTER_EMAIL: committer.email } : {}),
      },
    },
    { signal, isRepeatable: true, timeoutMs: 10 * 60_000, timeoutCode: 'CloneFailed' },
  )
  if (result.exit.exit_code !== 0) throw checkoutFailure(result.tail)
}

function checkoutFailure(tail: string): TaskError {
  const full = /No space left on device|Disk quota exceeded/i.test(tail)
  return new TaskError(full ? 'DiskFull' : 'CloneFailed', `the clone inside the sandbox failed: ${tail}`)
}

async function injectFiles(
  daemon: DaemonClient,
  workspace: Workspace,
  files: readonly AgentTaskFile[],
  { task, signal }: StepContext,
): Promise<void> {
  if (files.length === 0) return
  for (const file of files) {
    if (!isInjectablePath(file.path)) throw new TaskError('FileInjectionFailed', `"${file.path}" leaves the repository`)
    const content = file.encoding === 'base64' ? Buffer.from(file.content, 'base64') : file.content
    const mode = (file.mode ?? 0o644).toString(8).padStart(4, '0')
    try {
      await daemon.writeFile(`${workspace.repository}/${file.path}`, content, { mode, mkdirs: true, signal })
    } catch (error) {
      if (signal.aborted) throw error
      throw new TaskError('FileInjectionFailed', `"${file.path}" could not be written: ${(error as Error).message}`, {
        cause: error,
      })
    }
  }
  // New files are context for the agent, not work of its own: they stay out of the commit.
  const result = await runCommand(
    daemon,
    `${task.metadata.uid}.exclude`,
    {
      argv: ['/bin/sh', '-c', excludeScript],
      env: {
        REPO: workspace.repository,
        EXCLUDED: files.map((file) => file.path).join('\n'),
        KEPT: scratchFiles.excludes(workspace.scratch),
      },
    },
    { signal, isRepeatable: true, timeoutMs: 60_000 },
  )
  if (result.exit.exit_code !== 0) throw new TaskError('FileInjectionFailed', result.tail)
}
