import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type SealRequest, SnapshotError } from '@corral/ports'
import { taskWarning } from '@corral/protocol'
import type {
  AgentTask,
  AgentTaskStatus,
  Environment,
  EnvironmentBuild,
  EnvironmentSettings,
  Stored,
} from '@corral/resources'
import { explained, findEviction, findOomKill } from '../agent-task/pod-eviction.js'
import { checkoutKey, isCheckoutBuild } from '../environment/build/checkout-snapshot.js'
import { type BuiltSnapshot, labelsOf } from '../environment/build/choose-snapshot.js'
import type { EnvironmentBuilds } from '../environment/build/environment-builds.js'
import { keyInSandbox } from '../environment/build/sandbox-facts.js'
import type { SnapshotTrees } from '../environment/build/snapshot-trees.js'
import { declaredEnvironment, withSandbox, withTools } from '../environment/declared-environment.js'
import type { SandboxContext } from '../environment/sandbox-context.js'
import { endBackground } from '../environment/services/background.js'
import { setupSecrets } from '../environment/setup-secrets.js'
import type { PreparedRepository } from '../repository/repository.js'
import { runCommand } from '../sandbox/run-command.js'
import { settleIndexScript } from '../sandbox/scripts.js'
import { checkOutSubmodules } from '../steps/check-out-submodules.js'
import { progressEvents } from '../steps/progress-events.js'
import { checkOut } from '../steps/repository-step.js'
import { type SandboxContextPorts, type SandboxLine, sandboxContext, sandboxLine } from '../steps/sandbox-context.js'
import { runSetup } from '../steps/setup-step.js'
import { finalFailure, TaskError } from '../task-error.js'
import { definedOnly } from '../task-request.js'
import { nothingToBuild } from './nothing-to-build.js'
import { maxStrays, strayFilesScript } from './stray-files.js'

export interface BuildPorts extends SandboxContextPorts {
  environments: EnvironmentBuilds
  trees: Pick<SnapshotTrees, 'seal'>
}

export interface BuildOutcome {
  snapshot: string
  key: string
  commit: string
  settings?: EnvironmentSettings
}

/** A failure with what was known by then. */
export class BuildError extends Error {
  override readonly name: string = 'BuildError'
  constructor(
    override readonly cause: unknown,
    readonly known: { key?: string; commit?: string; settings?: EnvironmentSettings },
  ) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

/**
 * Sets the environment's branch up in the build's sandbox as a task would, and seals what that left. Every part of it may be
 * repeated: commands that ran are joined, a snapshot that this build has sealed is answered. Rejects with a `BuildError`.
 */
export async function runBuild(
  environment: Stored<Environment>,
  build: EnvironmentBuild,
  ports: BuildPorts,
  { signal, onSealing }: { signal: AbortSignal; onSealing: () => void },
): Promise<BuildOutcome> {
  const log = ports.log.child({ environment: environment.metadata.name, build: build.number })
  const shown = shownAsTask(environment, build)
  const line = sandboxLine(shown, ports, signal)
  const contextOf = (status: Partial<AgentTaskStatus>): SandboxContext =>
    sandboxContext({ ...shown, status: { ...shown.status, ...status } }, line, ports, {
      environments: ports.environments,
      signal,
      log,
    })
  const known: BuildError['known'] = {}
  const find = async () => (await findEviction(ports.client, shown)) ?? findOomKill(ports.client, shown)
  try {
    return await explained(buildIn(contextOf, line, { environment, build, ports, known, onSealing }), find)
  } catch (error) {
    throw new BuildError(error, known)
  } finally {
    await line.close()
  }
}

interface BuildParts {
  environment: Stored<Environment>
  build: EnvironmentBuild
  ports: BuildPorts
  known: BuildError['known']
  onSealing: () => void
}

async function buildIn(
  contextOf: (status: Partial<AgentTaskStatus>) => SandboxContext,
  line: SandboxLine,
  { environment, build, ports, known, onSealing }: BuildParts,
): Promise<BuildOutcome> {
  const first = contextOf({})
  const { spec } = environment
  const { signal, record } = first
  const directory = await record.workDirectory()
  const pinned = await pinnedCommit(directory)
  const prepared = await first.repository.prepare({
    url: spec.repository.url,
    ...(spec.ref ? { baseBranch: spec.ref } : {}),
    isBaseTrusted: true,
    ...(pinned ? { baseCommit: pinned } : {}),
    submodules: spec.repository.submodules,
    lfs: spec.repository.lfs,
    environmentFile: spec.file,
    taskDirectory: directory,
    signal,
    onProgress: progressEvents(first),
  })
  known.commit = prepared.commit
  if (!pinned) await writeFile(join(directory, commitFile), prepared.commit)
  if (isCheckoutBuild(build.request))
    return buildCheckout(first, prepared, line, { environment, build, ports, known, onSealing })
  const asked = await declaredEnvironment(first, prepared)
  if (!hasSetup(asked.status.environment)) throw nothingToBuild(prepared.environmentFile, spec)
  const declared = await withSandbox(asked, first)
  const { daemon } = await line.openSandbox()
  const { status, warnings, events } = await withTools(declared, daemon, first, prepared.commit)
  const found = status.environment
  if (!hasSetup(found)) throw nothingToBuild(prepared.environmentFile, spec)
  const settings = settingsOf(found)
  known.settings = settings
  const context = contextOf({ environment: found, warnings })
  const wanted = await keyInSandbox(context, daemon, found, prepared, declared.keyFiles)
  known.key = wanted.key
  await first.eventLog.append(build.uid, [
    ...events,
    ...warnings.map((each) => ({ type: 'warning' as const, ...each })),
  ])
  const same = build.noCache ? undefined : newestOf(ports.environments.snapshots(environment), wanted.key)
  if (same) return { snapshot: same.name, key: wanted.key, commit: same.commit, settings }

  await record.keepFile('bundle-in', prepared.bundlePath)
  const workspace = await line.findWorkspace()
  await checkOut(context, prepared, { isOntoSnapshot: false, work: { WORK_BUNDLE: '', WORK_REF: '' } })
  await checkOutSubmodules(daemon, workspace, prepared.submodules, context)
  await runSetup(context, found.setup)
  await endBackground(daemon, context, found.services ?? [])
  await warnOfStrays(context)
  const secrets = await setupSecrets(context.task, context.findSecret)
  const name = `${environment.metadata.name}-${build.number}`
  const labels = labelsOf({
    environment: environment.metadata.name,
    environmentUid: environment.metadata.uid,
    build: build.uid,
    key: wanted.key,
    baseKey: wanted.baseKey,
    commit: prepared.commit,
    files: wanted.files,
    settings,
  })
  const paths = [workspace.repository, workspace.home]
  const request = { podUid: build.podUid ?? '', name, paths, secrets: Object.values(secrets.env), labels, signal }
  await seal(request, first, { build, ports, onSealing })
  return { snapshot: name, key: wanted.key, commit: prepared.commit, settings }
}

function settingsOf({
  env,
  path,
  tools,
  image,
  resources,
}: NonNullable<AgentTaskStatus['environment']>): EnvironmentSettings {
  return definedOnly({ env, path, tools, image, resources })
}

/** A build without set-up: the checkout of a large repository, for tasks that would otherwise bring it in each. */
async function buildCheckout(
  context: SandboxContext,
  prepared: PreparedRepository,
  line: SandboxLine,
  { environment, build, ports, known, onSealing }: BuildParts,
): Promise<BuildOutcome> {
  const { signal, record } = context
  const { metadata, spec } = environment
  const key = checkoutKey(spec)
  known.key = key
  await record.keepFile('bundle-in', prepared.bundlePath)
  const { repository } = await line.findWorkspace()
  await checkOut(context, prepared, { isOntoSnapshot: false, work: { WORK_BUNDLE: '', WORK_REF: '' } })
  const name = `${metadata.name}-${build.number}`
  const of = { environment: metadata.name, environmentUid: metadata.uid, build: build.uid }
  const labels = labelsOf({ ...of, key, baseKey: key, commit: prepared.commit, files: [] })
  const request = { podUid: build.podUid ?? '', name, paths: [repository], secrets: [], labels, signal }
  await seal(request, context, { build, ports, onSealing })
  return { snapshot: name, key, commit: prepared.commit }
}

async function seal(
  request: SealRequest,
  context: SandboxContext,
  { build, ports, onSealing }: Pick<BuildParts, 'build' | 'ports' | 'onSealing'>,
): Promise<void> {
  const { daemon } = await context.openSandbox()
  const { repository } = await context.findWorkspace()
  // No task could check its base out on such a tree.
  if (!(await daemon.statFile(`${repository}/.git`, { signal: context.signal })))
    throw new TaskError('SetupFailed', 'set-up removed .git of the repository', { details: finalFailure })
  await runCommand(
    daemon,
    `${build.uid}.settle`,
    { argv: ['/bin/sh', '-c', settleIndexScript], env: { REPO: repository } },
    { signal: context.signal, isRepeatable: true, timeoutMs: 10 * 60_000 },
  )
  const detail = `sealing snapshot ${request.name}`
  await context.eventLog.append(build.uid, [{ type: 'stage', stage: 'setup', state: 'progress', detail }])
  onSealing()
  await ports.trees.seal(request, context).catch((error: unknown) => Promise.reject(sealFailure(error)))
}

const commitFile = 'build-commit'

/** The commit an earlier process began with: the branch may have moved since, and the tree in the sandbox has not. */
async function pinnedCommit(directory: string): Promise<string | undefined> {
  const text = await readFile(join(directory, commitFile), 'utf8').catch(() => '')
  return /^[0-9a-f]{40,64}$/.test(text) ? text : undefined
}

function newestOf(snapshots: readonly BuiltSnapshot[], key: string): BuiltSnapshot | undefined {
  return snapshots.filter((each) => each.key === key).sort((a, b) => (a.builtAt > b.builtAt ? -1 : 1))[0]
}

function sealFailure(error: unknown): unknown {
  if (!(error instanceof SnapshotError)) return error
  const isGone = error.code === 'NotFound' && error.message.includes('no pod')
  return new TaskError(isGone ? 'SandboxLost' : 'SnapshotRefused', `${error.code}: ${error.message}`, { cause: error })
}

async function warnOfStrays(context: SandboxContext): Promise<void> {
  const { task, eventLog, signal } = context
  const { daemon } = await context.openSandbox()
  const { repository } = await context.findWorkspace()
  const { stdout } = await runCommand(
    daemon,
    `${task.metadata.uid}.strays`,
    { argv: ['/bin/sh', '-c', strayFilesScript], env: { REPO: repository, TEMPORARY: '/tmp', ROOT: '' } },
    { signal, isRepeatable: true, timeoutMs: 60_000 },
  )
  const strays = stdout.split('\n').filter(Boolean)
  if (strays.length === 0) return
  const others = `${strays.length < maxStrays ? '' : 'at least '}${strays.length - 5} more`
  const detail = `${strays.slice(0, 5).join(', ')}${strays.length > 5 ? `, and ${others}` : ''}`
  await eventLog.append(task.metadata.uid, [{ type: 'warning', ...taskWarning('SetupOutsideSnapshot', { detail }) }])
}

const hasSetup = (environment: AgentTaskStatus['environment']): environment is NonNullable<typeof environment> =>
  environment !== undefined && (environment.setup !== undefined || environment.source === '.corral/setup')

/** The build in the shape steps know: a task on the trusted branch whose agent never comes. It is stored nowhere. */
function shownAsTask(environment: Stored<Environment>, build: EnvironmentBuild): Stored<AgentTask> {
  const { spec, metadata } = environment
  const { claimName, sandboxName, podName } = build
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: { ...metadata, uid: build.uid },
    spec: {
      repository: spec.repository,
      prompt: 'build',
      agent: { name: 'none' },
      ...(spec.ref ? { baseBranch: spec.ref } : {}),
      ...(spec.part ? { part: spec.part } : {}),
      ...(spec.file ? { environmentFile: spec.file } : {}),
      newBranch: 'corral/environment',
    },
    status: {
      sandbox: { claimName, ...(sandboxName ? { sandboxName } : {}), ...(podName ? { podName } : {}) },
    },
  }
}
