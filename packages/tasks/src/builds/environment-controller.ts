import { createInformer, type Informer, type KubeClient } from '@corral/kube'
import type { Clock, Logger, SnapshotInfo } from '@corral/ports'
import { type Environment, Environments, type SandboxClaim, type Stored } from '@corral/resources'
import { controllingOwner, keyOf, startController, WorkQueue } from '@corral/runtime'
import { type BuiltSnapshot, builtSnapshot } from '../environment/build/choose-snapshot.js'
import type { EnvironmentBuilds } from '../environment/build/environment-builds.js'
import { ensureEnvironment, isBuilding, requestBuild } from '../environment/build/environment-object.js'
import { prunable, type SnapshotLimits, snapshotLimits } from '../environment/build/prune.js'
import type { SnapshotTrees } from '../environment/build/snapshot-trees.js'
import type { SandboxContextPorts } from '../steps/sandbox-context.js'
import { createBuildRunner } from './build-runner.js'
import { followBuild } from './follow-build.js'
import { environmentReconciler } from './reconciler.js'
import { runBuild } from './run-build.js'

export interface EnvironmentControllerOptions extends SandboxContextPorts {
  client: KubeClient
  namespace: string
  /** Where what was built is kept. */
  trees: SnapshotTrees
  limits?: Partial<SnapshotLimits>
  /** Claims of the namespace, watched already. */
  claims: Pick<Informer<SandboxClaim>, 'subscribe'>
  clock: Clock
  log: Logger
}

export interface EnvironmentController {
  readonly ready: Promise<void>
  readonly builds: EnvironmentBuilds
  /** Whether any build is under way. */
  isBuilding(): boolean
  /** Stops deciding. A build goes on in its sandbox; the next controller joins it. */
  stop(): Promise<void>
}

/** A builds' last use is written down when it is this much later than what is written. */
const usedEveryMs = 60_000

/** Starts the controller of Environments in one namespace. */
export function startEnvironmentController(options: EnvironmentControllerOptions): EnvironmentController {
  const { client, namespace, clock, log, records, trees } = options
  const limits = { ...snapshotLimits, ...options.limits }
  const lifetime = new AbortController()
  const queue = new WorkQueue({ name: 'environment' })
  const environments = createInformer({ client, namespace, kind: Environments, log, signal: lifetime.signal })
  /** When snapshots were last given out by this process. */
  const used = new Map<string, string>()
  const wakeBuild = (uid: string): void => {
    for (const each of environments.list()) if (each.status?.build?.uid === uid) queue.add(keyOf(each))
  }
  const runner = createBuildRunner(wakeBuild)
  const all = (): BuiltSnapshot[] => trees.list().flatMap((each: SnapshotInfo) => builtSnapshot(each) ?? [])
  const ownOf = ({ metadata }: Stored<Environment>): BuiltSnapshot[] =>
    all().filter(({ environmentUid }) => environmentUid === metadata.uid)
  const lastUsed = (name: string): string | undefined => {
    const written = environments.list().flatMap(({ status }) => status?.snapshots ?? [])
    return [used.get(name), written.find((each) => each.name === name)?.lastUsedAt]
      .flatMap((time) => time ?? [])
      .sort()
      .at(-1)
  }

  environments.subscribe({
    add: (each) => queue.add(keyOf(each)),
    update: (each) => queue.add(keyOf(each)),
    delete: (each) => {
      if (each.status?.build) runner.abort(each.status.build.uid)
    },
  })
  const ownerKeys = controllingOwner(Environments)
  const onClaim = (claim: Parameters<typeof ownerKeys>[0]): void => {
    for (const key of ownerKeys(claim)) queue.add(key)
  }
  const unsubscribe = options.claims.subscribe({ add: onClaim, update: onClaim, delete: onClaim })

  const builds: EnvironmentBuilds = {
    ensure: (identity) => ensureEnvironment(client, namespace, identity),
    snapshots: ownOf,
    find: (name) => all().find((each) => each.name === name),
    givesCheckouts: () => trees.givesCheckouts(),
    withKey: (key) =>
      all()
        .filter((each) => each.key === key)
        .sort((a, b) => (a.builtAt > b.builtAt ? -1 : 1)),
    async request(environment, request) {
      const ref = { namespace, name: environment.metadata.name }
      const build = { request, ...(request.startsWith('age-') ? { noCache: true } : {}) }
      while (!(await requestBuild(client, await client.get(Environments, ref), build)));
    },
    build: (environment, request, run) => followBuild({ client, records, environments }, environment, request, run),
    async attach(sandbox, snapshot) {
      used.set(snapshot, clock.now().toISOString())
      const isAttached = await trees.attach(sandbox, snapshot)
      const environment = isAttached ? builds.find(snapshot)?.environment : undefined
      const written = environments.list().flatMap(({ status }) => status?.snapshots ?? [])
      const before = written.find(({ name }) => name === snapshot)?.lastUsedAt
      const isNews = before === undefined || clock.now().getTime() - Date.parse(before) > usedEveryMs
      if (environment && isNews) queue.add(keyOf({ metadata: { namespace, name: environment } }))
      return isAttached
    },
    attached: (sandbox) => trees.attached(sandbox),
    rootOf: (task) => trees.rootOf(task),
  }

  const reconcile = environmentReconciler({
    client,
    records,
    trees,
    runner,
    work: (environment, run) => {
      const build = environment.status?.build
      if (!build) return Promise.reject(new TypeError('there is no build'))
      return runBuild(environment, build, { ...options, environments: builds }, run)
    },
    snapshotsOf: (environment) =>
      ownOf(environment).map((each) => ({
        ...each,
        isInUse: trees.inUse(each.name).length > 0,
        lastUsedAt: spaced(used.get(each.name), environment, each.name),
      })),
    prunable: () =>
      prunable(
        all().map((each) => ({
          ...each,
          isInUse: trees.inUse(each.name).length > 0,
          lastUsedAt: lastUsed(each.name),
        })),
        limits,
        clock.now(),
      ),
    changed: () => {
      for (const each of environments.list()) queue.add(keyOf(each))
    },
    clock,
    log,
  })
  const ready = environments.hasSynced
  ready.catch(() => undefined)
  const controller = ready.then(() =>
    startController({ name: 'environment', workers: 1, reconcile, queue, log, signal: lifetime.signal }),
  )
  controller.catch(() => undefined)

  return {
    ready,
    builds,
    isBuilding: () => environments.list().some(isBuilding),
    async stop() {
      unsubscribe()
      lifetime.abort()
      await runner.close()
      await controller.then(({ stopped }) => stopped).catch(() => undefined)
      await environments.stop()
    },
  }
}

/** The time to write down; what is written already where that is recent enough. */
function spaced(time: string | undefined, { status }: Stored<Environment>, name: string): string | undefined {
  const before = status?.snapshots?.find((each) => each.name === name)?.lastUsedAt
  if (time === undefined || before === undefined) return time ?? before
  return Date.parse(time) - Date.parse(before) > usedEveryMs ? time : before
}
