import type { KubeClient } from '@corral/kube'
import type { Clock, Logger, SnapshotStore, SpanSink } from '@corral/ports'
import type { ControllerMetrics } from '@corral/runtime'
import type { UsageRecord } from './agent-task/usage-record.js'
import type { ModelProviders } from './broker/model-providers.js'
import type { ProviderHolds } from './broker/provider-holds.js'
import type { ArchiveDirectory } from './environment/archive/archive-directory.js'
import type { SnapshotLimits } from './environment/build/prune.js'
import type { EnvironmentGrants } from './environment/environment-grants.js'
import type { PackageClients } from './environment/package-clients.js'
import type { TaskClient } from './places/place-client.js'
import type { SandboxPlaces } from './places/sandbox-place.js'
import type { TaskRecords } from './records/task-records.js'
import type { Repository } from './repository/repository.js'
import type { SandboxAccess } from './sandbox/sandbox-session.js'
import type { SecretStore } from './secrets/secret-store.js'
import type { TaskMetrics } from './task-metrics.js'

export interface TaskControllerOptions {
  client: KubeClient
  namespace: string
  sandboxes: SandboxAccess
  repository: Repository
  records: TaskRecords
  /**
   * Where what environments have built is kept. A function: the snapshots of the node that runs the sandboxes, undefined while it
   * starts. A directory: archives in it, for nodes that are not ours. Without it every task sets itself up.
   */
  snapshots?: (() => SnapshotStore | undefined) | ArchiveDirectory
  /** What environments may keep. */
  snapshotLimits?: Partial<SnapshotLimits>
  usage: UsageRecord
  broker: { baseUrl: string; tokenFor(taskUid: string): string }
  providers: ModelProviders
  /** Other clusters whose sandboxes tasks may ask for. */
  places?: SandboxPlaces
  /** Providers that asked to wait: no further agent is started on them meanwhile. */
  holds?: ProviderHolds
  /** Tasks that may hold a sandbox at once; 0 admits none. */
  maxConcurrent: number
  /** Sandboxes of ended tasks that may be held for follow-ups at once; 5 where left out. */
  maxHeld?: number
  isolation?: string
  /** How package clients inside reach the package mirror, where the platform has one. */
  packageClients?: PackageClients
  /** Whether nodes let a task reach addresses by name, as ours do: a task that asks for it ends where this is false. */
  hasEgressByName?: boolean
  /** What environment files may open, per repository; nothing but the package mirror where left out. */
  environmentGrants?: Pick<EnvironmentGrants, 'of'>
  /** Where secrets that repositories were granted are kept. */
  secrets?: Pick<SecretStore, 'find'>
  /** Told whenever it changes: how long sandboxes of tasks are needed should this process go away; undefined for none. */
  onSandboxesNeeded?(until: Date | undefined): void
  metrics?: TaskMetrics & { controller?: ControllerMetrics }
  /** Hears of tasks that ended and of each run of a step. */
  spans?: SpanSink | undefined
  clock: Clock
  log: Logger
}

/** The same for the steps of one task: of its sandbox's cluster, where that is another one. */
export type StepOptions = Omit<TaskControllerOptions, 'client'> & { client: TaskClient }
