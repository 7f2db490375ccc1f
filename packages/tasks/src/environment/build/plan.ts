import {
  type Condition,
  type Environment,
  type EnvironmentBuild,
  type EnvironmentSettings,
  type EnvironmentSnapshot,
  type EnvironmentStatus,
  findCondition,
  type SandboxClaim,
  type Stored,
  setCondition,
} from '@corral/resources'
import type { BuiltSnapshot } from './choose-snapshot.js'
import { isBuilding } from './environment-object.js'
import { snapshotLimits } from './prune.js'

/** How the work of a build ended in this process. */
export type EndedBuild =
  | { outcome: { snapshot: string; key: string; commit: string; settings?: EnvironmentSettings } }
  | { failure: BuildFailure }
  /** Worth another try in the same sandbox, after a while. */
  | { retryMs: number }

export interface BuildFailure {
  code: string
  message: string
  hint?: string | undefined
  key?: string | undefined
  commit?: string | undefined
  settings?: EnvironmentSettings | undefined
  /** The sandbox is gone and nothing is wrong with the build itself. */
  isSandboxLost: boolean
}

/** The sandbox a build was given. */
export interface BuildSandbox {
  sandboxName: string
  podName: string
  podUid: string
}

export interface EnvironmentWorld {
  environment: Stored<Environment>
  /** The claim of the last build. */
  claim: Stored<SandboxClaim> | undefined
  /** The sandbox of that claim, once it is ready. */
  sandbox: BuildSandbox | undefined
  /** Whether this process works on the build. */
  isWorking: boolean
  /** That work is sealing: its pod is over, however long that takes. */
  isSealing?: boolean
  /** How that work ended, told once. */
  ended?: EndedBuild | undefined
  /** What the node has of this environment, and who has it. */
  snapshots: readonly (BuiltSnapshot & { isInUse: boolean; lastUsedAt?: string | undefined })[]
  /** Those of them that are to go. */
  prunable: readonly string[]
  /** Names the events of the next build. */
  nextUid: string
  now: Date
}

export type EnvironmentAction =
  | { kind: 'addFinalizer' | 'removeFinalizer' | 'createClaim' | 'deleteClaim' | 'work' | 'abort' }
  | { kind: 'removeSnapshot'; name: string }
  /** Drops the events of a build. */
  | { kind: 'forgetBuild'; uid: string }

export interface EnvironmentPlan {
  actions: EnvironmentAction[]
  /** Written after the actions, where it differs from what is there. */
  status: EnvironmentStatus
  requeueAfterMs?: number
}

export const environmentFinalizer = 'corral.dev/environment'

export const buildLimits: {
  /** Until the sandbox is ready. */
  provisioningMs: number
  /** Sandboxes a build may lose. */
  attempts: number
  /** How long the sandbox of a failed build is kept for a user to look into. */
  keepFailedMs: number
  /** A sandbox that is away for this long is lost. */
  graceMs: number
} = { provisioningMs: 5 * 60_000, attempts: 3, keepFailedMs: 15 * 60_000, graceMs: 30_000 }

/** What an environment needs next. Pure: everything it knows is in `world`, the time included. */
export function planEnvironment(world: EnvironmentWorld): EnvironmentPlan {
  const { environment } = world
  if (environment.metadata.deletionTimestamp) return takeDown(world)
  if (!environment.metadata.finalizers?.includes(environmentFinalizer))
    return { actions: [{ kind: 'addFinalizer' }], status: environment.status ?? {} }
  const plan = isBuilding(environment) ? goOn(world) : atRest(world)
  const status = described(world, plan.status)
  const drops = world.prunable.map((name) => ({ kind: 'removeSnapshot', name }) as const)
  return { ...plan, actions: [...plan.actions, ...drops], status }
}

/** Nothing is built: what the last build left is tidied, and the next one begins where it is asked for. */
function atRest(world: EnvironmentWorld): EnvironmentPlan {
  const { environment, claim, now } = world
  const { build, ...status } = environment.status ?? {}
  const wanted = environment.spec.build
  const leftMs = build?.state === 'Failed' ? keptMs(build, now) : 0
  const goesOn = wanted !== undefined && wanted.request !== build?.request
  if (claim && (goesOn || leftMs <= 0)) {
    // The record of the build stands; only now may its sandbox go.
    const isGoing = claim.metadata.deletionTimestamp !== undefined
    return { actions: isGoing ? [] : [{ kind: 'deleteClaim' }], status: { ...status, ...(build ? { build } : {}) } }
  }
  if (!goesOn)
    return {
      actions: [],
      status: { ...status, ...(build ? { build } : {}) },
      ...(claim ? { requeueAfterMs: leftMs } : {}),
    }
  const number = (build?.number ?? 0) + 1
  const time = now.toISOString()
  return {
    actions: build ? [{ kind: 'forgetBuild', uid: build.uid }] : [],
    status: {
      ...status,
      build: {
        request: wanted.request,
        number,
        attempt: 1,
        uid: world.nextUid,
        state: 'Starting',
        ...(wanted.noCache ? { noCache: true } : {}),
        startedAt: time,
        attemptStartedAt: time,
        claimName: claimName(environment, number, 1),
      },
    },
  }
}

function goOn(world: EnvironmentWorld): EnvironmentPlan {
  const { environment, claim, sandbox, ended, isWorking, now } = world
  const build = environment.status?.build
  if (!build) return { actions: [], status: environment.status ?? {} }
  const with_ = (change: Partial<EnvironmentBuild>, actions: EnvironmentAction[] = []): EnvironmentPlan => ({
    actions,
    status: { ...environment.status, build: { ...build, ...change } },
  })
  // It was sealed, whatever became of the process that did it.
  const sealed = world.snapshots.find((each) => each.build === build.uid)
  if (sealed) {
    const { name, key, commit, settings } = sealed
    return with_({ ...over('Succeeded', now), snapshot: name, key, commit, ...(settings ? { settings } : {}) })
  }
  if (ended && 'outcome' in ended) return with_({ ...over('Succeeded', now), ...ended.outcome })
  if (ended && 'failure' in ended) return failed(world, build, ended.failure)
  if (ended) return { ...with_({}), requeueAfterMs: ended.retryMs }
  if (isWorking && world.isSealing) return with_({})
  if (!claim) {
    if (build.sandboxName) return failed(world, build, lost('its sandbox is gone'))
    return with_({}, [{ kind: 'createClaim' }])
  }
  const ready = findCondition(claim.status?.conditions ?? [], 'Ready')
  if (claim.metadata.deletionTimestamp)
    return build.sandboxName ? failed(world, build, lost('its sandbox is gone')) : with_({})
  if (ready?.status === 'True' && sandbox && !build.sandboxName) return with_({ ...sandbox, state: 'Running' })
  if (!build.sandboxName) {
    const leftMs = Date.parse(build.attemptStartedAt) + buildLimits.provisioningMs - now.getTime()
    const message = ready?.message ? `: ${ready.message}` : ''
    if (leftMs <= 0)
      return failed(world, build, {
        code: 'ProvisioningTimeout',
        message: `the sandbox of the build was not ready in time${message}`,
        isSandboxLost: false,
      })
    return { ...with_({}), requeueAfterMs: leftMs }
  }
  if (ready && ready.status !== 'True') {
    const leftMs = Date.parse(ready.lastTransitionTime) + buildLimits.graceMs - now.getTime()
    if (leftMs > 0) return { ...with_({}), requeueAfterMs: leftMs }
    return failed(world, build, lost(ready.message || 'its sandbox is no longer ready'))
  }
  return with_({}, isWorking ? [] : [{ kind: 'work' }])
}

/** A build that lost its sandbox is tried again in another one; every other failure ends it. */
function failed(world: EnvironmentWorld, build: EnvironmentBuild, failure: BuildFailure): EnvironmentPlan {
  const { environment, claim, isWorking, now } = world
  const abort: EnvironmentAction[] = isWorking ? [{ kind: 'abort' }] : []
  const { isSandboxLost, code, message, hint, key, commit, settings } = failure
  if (isSandboxLost && build.attempt < buildLimits.attempts) {
    const { sandboxName: _, podName: __, podUid: ___, ...rest } = build
    const attempt = build.attempt + 1
    const next: EnvironmentBuild = {
      ...rest,
      attempt,
      state: 'Starting',
      attemptStartedAt: now.toISOString(),
      claimName: claimName(environment, build.number, attempt),
    }
    // The claim first: the name of the next one is recorded with this write, and nothing would find the old one again.
    const actions: EnvironmentAction[] = claim ? [...abort, { kind: 'deleteClaim' }] : abort
    return { actions, status: { ...environment.status, build: next } }
  }
  const cause = { code, message: message.slice(0, 8_000), ...(hint ? { hint } : {}) }
  const ended = {
    ...over('Failed', now),
    cause,
    ...(key ? { key } : {}),
    ...(commit ? { commit } : {}),
    ...(settings ? { settings } : {}),
  }
  return { actions: abort, status: { ...environment.status, build: { ...build, ...ended } } }
}

const lost = (message: string): BuildFailure => ({ code: 'SandboxLost', message, isSandboxLost: true })

const over = (state: 'Succeeded' | 'Failed', now: Date): Pick<EnvironmentBuild, 'state' | 'finishedAt'> => ({
  state,
  finishedAt: now.toISOString(),
})

/** Nothing was run in the sandbox yet. */
const beforeSetup: readonly string[] = [
  ...['EnvironmentInvalid', 'EnvironmentNotGranted', 'ToolMissing', 'SecretMissing', 'InvalidTask'],
  ...['RepositoryNotFound', 'RepositoryAccessDenied', 'RepositoryUntrusted', 'RepositoryDamaged', 'RepositoryEmpty'],
  'BranchNotFound',
]

/**
 * Whether the sandbox of a build that failed with this is kept to be looked at. One that filled the disk is not: nothing else could
 * be written meanwhile, by the next build neither.
 */
export const isKept = (code: string | undefined): boolean =>
  code !== 'DiskFull' && code !== 'DiskLimit' && !beforeSetup.includes(code ?? '')

const keptMs = ({ finishedAt, cause }: EnvironmentBuild, now: Date): number =>
  isKept(cause?.code) ? (finishedAt ? Date.parse(finishedAt) : 0) + buildLimits.keepFailedMs - now.getTime() : 0

/** Every attempt has a claim of its own: the one before may still be on its way out. */
function claimName({ metadata }: Stored<Environment>, number: number, attempt: number): string {
  return `${metadata.name}-b${number}-${attempt}`
}

/** Everything it has goes first; a snapshot that a pod still has keeps the environment until the pod is gone. */
function takeDown(world: EnvironmentWorld): EnvironmentPlan {
  const { environment, claim, isWorking, snapshots } = world
  const status = environment.status ?? {}
  const actions: EnvironmentAction[] = isWorking ? [{ kind: 'abort' }] : []
  if (claim)
    return { actions: claim.metadata.deletionTimestamp ? actions : [...actions, { kind: 'deleteClaim' }], status }
  const free = snapshots.filter(({ isInUse }) => !isInUse)
  actions.push(...free.map(({ name }) => ({ kind: 'removeSnapshot', name }) as const))
  if (snapshots.length > free.length) return { actions, status, requeueAfterMs: 10_000 }
  if (isWorking || !environment.metadata.finalizers?.includes(environmentFinalizer)) return { actions, status }
  if (status.build) actions.push({ kind: 'forgetBuild', uid: status.build.uid })
  return { actions: [...actions, { kind: 'removeFinalizer' }], status }
}

/** The status with what the node has, and what that means. */
function described(
  { environment, snapshots, prunable, now }: EnvironmentWorld,
  status: EnvironmentStatus,
): EnvironmentStatus {
  const kept = snapshots.filter(({ name }) => !prunable.includes(name)).sort((a, b) => (a.builtAt > b.builtAt ? -1 : 1))
  const before = new Map((status.snapshots ?? []).map((each) => [each.name, each.lastUsedAt]))
  const list = kept.map((each): EnvironmentSnapshot => {
    const lastUsedAt = [each.lastUsedAt, before.get(each.name)]
      .flatMap((time) => time ?? [])
      .sort()
      .at(-1)
    return {
      ...{ name: each.name, key: each.key, baseKey: each.baseKey, commit: each.commit },
      lockfiles: each.files.map(({ path }) => path).slice(0, 200),
      builtAt: each.builtAt,
      sizeBytes: each.sizeBytes,
      files: each.fileCount,
      ...(lastUsedAt ? { lastUsedAt } : {}),
      ...(each.settings ? { settings: each.settings } : {}),
    }
  })
  const generation = environment.metadata.generation
  const { key: _, snapshots: __, ...rest } = status
  return {
    ...rest,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...(list[0] ? { key: list[0].key } : {}),
    ...(list.length > 0 || status.snapshots ? { snapshots: list } : {}),
    conditions: conditionsOf(status, list, generation, now),
  }
}

function conditionsOf(
  { conditions = [], build }: EnvironmentStatus,
  [newest]: readonly EnvironmentSnapshot[],
  generation: number | undefined,
  now: Date,
): Condition[] {
  const observed = generation === undefined ? {} : { observedGeneration: generation }
  const isFailed = build?.state === 'Failed'
  const built = newest
    ? { status: 'True' as const, reason: 'Sealed', message: `snapshot ${newest.name}` }
    : {
        status: 'False' as const,
        reason: isFailed ? (build.cause?.code ?? 'Failed') : build ? 'Building' : 'NotBuilt',
        message: isFailed ? (build.cause?.message ?? '').slice(0, 2_000) : 'nothing was built yet',
      }
  const isOld = newest !== undefined && now.getTime() - Date.parse(newest.builtAt) > snapshotLimits.maxAgeMs
  const isBehind = newest !== undefined && isFailed
  const stale = {
    status: isOld || isBehind ? ('True' as const) : ('False' as const),
    reason: isOld ? 'Age' : isBehind ? 'BuildFailed' : 'UpToDate',
    message: isOld
      ? `built on ${newest.builtAt}; the next task has it built anew`
      : isBehind
        ? 'the last build failed; tasks get the one before'
        : '',
  }
  const first = setCondition(conditions, { type: 'Built', ...built, ...observed }, now)
  return setCondition(first, { type: 'Stale', ...stale, ...observed }, now)
}
