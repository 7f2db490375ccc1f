import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { KubeClient } from '@corral/kube'
import { type Clock, type Logger, SnapshotError } from '@corral/ports'
import {
  type Environment,
  Environments,
  findCondition,
  isAlreadyExists,
  Pods,
  type SandboxClaim,
  SandboxClaims,
  type Stored,
} from '@corral/resources'
import type { Reconcile } from '@corral/runtime'
import { ensurePool, poolOf } from '../agent-task/claim.js'
import { findPodName } from '../agent-task/pod-eviction.js'
import { buildClaim } from '../environment/build/build-claim.js'
import {
  type BuildSandbox,
  type EnvironmentAction,
  type EnvironmentWorld,
  environmentFinalizer,
  planEnvironment,
} from '../environment/build/plan.js'
import type { SnapshotTrees } from '../environment/build/snapshot-trees.js'
import { deleteClaim } from '../held/find-claim.js'
import type { TaskRecords } from '../records/task-records.js'
import type { BuildRunner } from './build-runner.js'
import type { BuildOutcome } from './run-build.js'

export interface EnvironmentPorts {
  client: KubeClient
  records: Pick<TaskRecords, 'remove'>
  trees: Pick<SnapshotTrees, 'isReady' | 'remove'>
  runner: BuildRunner
  /** Does the work of the environment's build. */
  work(environment: Stored<Environment>, run: { signal: AbortSignal; onSealing: () => void }): Promise<BuildOutcome>
  /** What the node has of it. */
  snapshotsOf(environment: Stored<Environment>): EnvironmentWorld['snapshots']
  prunable(): readonly string[]
  /** A build has ended: others' snapshots may have to go for it. */
  changed(): void
  clock: Clock
  log: Logger
}

const nodeLookMs = 200

/** Read, plan, act. What a pass did is read back by the next one before anything is destroyed for it. */
export function environmentReconciler(ports: EnvironmentPorts): Reconcile {
  return async ({ namespace, name, signal }) => {
    const environment = await ports.client.find(Environments, { namespace, name }, { signal })
    if (!environment) return {}
    if (!ports.trees.isReady()) return { requeueAfterMs: nodeLookMs }
    const build = environment.status?.build
    const claim = build && (await ports.client.find(SandboxClaims, { namespace, name: build.claimName }, { signal }))
    const snapshots = ports.snapshotsOf(environment)
    const prunable = ports.prunable()
    const plan = planEnvironment({
      environment,
      claim,
      sandbox: claim && !build?.sandboxName ? await sandboxOf(ports.client, claim) : undefined,
      isWorking: build !== undefined && ports.runner.isWorking(build.uid),
      isSealing: build !== undefined && ports.runner.isSealing(build.uid),
      ended: build && ports.runner.takeEnded(build.uid),
      snapshots,
      prunable: snapshots.map((each) => each.name).filter((each) => prunable.includes(each)),
      nextUid: randomUUID(),
      now: ports.clock.now(),
    })
    let current = environment
    for (const action of plan.actions) current = (await perform(action, current, claim, ports)) ?? current
    if (plan.actions.some(({ kind }) => kind === 'removeFinalizer')) return {}
    if (!isDeepStrictEqual(plan.status, environment.status ?? {})) {
      await ports.client.updateStatus(Environments, { ...current, status: plan.status })
      if (plan.status.build?.state !== build?.state) {
        const { state, number, cause } = plan.status.build ?? {}
        ports.log.info('environment recorded', { environment: name, build: number, state, cause: cause?.code })
        ports.changed()
      }
    }
    return plan.requeueAfterMs === undefined ? {} : { requeueAfterMs: Math.max(1, plan.requeueAfterMs) }
  }
}

async function perform(
  action: EnvironmentAction,
  environment: Stored<Environment>,
  claim: Stored<SandboxClaim> | undefined,
  ports: EnvironmentPorts,
): Promise<Stored<Environment> | undefined> {
  const { client, runner } = ports
  const { build } = environment.status ?? {}
  const { namespace = 'default', finalizers = [] } = environment.metadata
  switch (action.kind) {
    case 'addFinalizer':
      return client.update(Environments, {
        ...environment,
        metadata: { ...environment.metadata, finalizers: [...finalizers, environmentFinalizer] },
      })
    case 'removeFinalizer':
      return client.update(Environments, {
        ...environment,
        metadata: { ...environment.metadata, finalizers: finalizers.filter((name) => name !== environmentFinalizer) },
      })
    case 'createClaim': {
      if (!build) return undefined
      const pool = poolOf(environment)
      await ensurePool(client, namespace, pool)
      await client.create(SandboxClaims, buildClaim(environment, build, pool.name)).catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error
      })
      return undefined
    }
    case 'deleteClaim':
      if (claim) await deleteClaim(client, claim)
      return undefined
    case 'work':
      if (build) runner.start(build.uid, (signal, onSealing) => ports.work(environment, { signal, onSealing }))
      return undefined
    case 'abort':
      if (build) runner.abort(build.uid)
      return undefined
    case 'forgetBuild':
      await ports.records.remove(action.uid)
      return undefined
    case 'removeSnapshot':
      await ports.trees.remove(action.name).catch((error: unknown) => {
        // A pod got it meanwhile: it goes another time.
        if (!(error instanceof SnapshotError) || error.code !== 'InUse') throw error
      })
      ports.log.info('snapshot removed', { environment: environment.metadata.name, snapshot: action.name })
      return undefined
  }
}

/** The sandbox of a claim that is ready, with the pod that holds its files. */
async function sandboxOf(
  client: Pick<KubeClient, 'find'>,
  claim: Stored<SandboxClaim>,
): Promise<BuildSandbox | undefined> {
  const { namespace = 'default' } = claim.metadata
  const sandboxName = claim.status?.sandbox?.name
  const isReady = findCondition(claim.status?.conditions ?? [], 'Ready')?.status === 'True'
  if (!isReady || !sandboxName) return undefined
  const podName = await findPodName(client, namespace, sandboxName)
  const pod = await client.find(Pods, { namespace, name: podName })
  return pod && { sandboxName, podName, podUid: pod.metadata.uid }
}
