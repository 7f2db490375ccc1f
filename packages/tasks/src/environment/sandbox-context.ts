import type { Logger } from '@corral/ports'
import type { AgentTask, SandboxResources, Stored } from '@corral/resources'
import type { EventLog } from '../event-log/event-log.js'
import type { TaskRecord } from '../records/task-records.js'
import type { Repository } from '../repository/repository.js'
import type { SandboxSession } from '../sandbox/sandbox-session.js'
import type { Workspace } from '../sandbox/workspace.js'
import type { EnvironmentBuilds } from './build/environment-builds.js'
import type { PhaseNetwork } from './network-phase.js'
import type { PackageClients } from './package-clients.js'
import type { NetworkPhase } from './phase-egress.js'
import type { GrantedToRepository } from './task-environment.js'
import type { RefusalWatch } from './watch-refusals.js'

/** What work in a sandbox may touch, be it that of a task or a build, which is one without an agent. */
export interface SandboxContext {
  readonly task: Stored<AgentTask>
  /** Opens the connection to the task's sandbox; the runner closes it when the step ends. */
  openSandbox(): Promise<SandboxSession>
  findWorkspace(): Promise<Workspace>
  /** What is kept of the task outside every sandbox. */
  readonly record: TaskRecord
  readonly repository: Repository
  readonly eventLog: EventLog
  /** See `enterPhase`. */
  enterPhase(phase: NetworkPhase): Promise<PhaseNetwork>
  /** See `watchRefusals`. */
  watchRefusals(): RefusalWatch
  /** What the operator lets environment files of this repository open. */
  grantedTo(repository: string): Promise<GrantedToRepository>
  /** The limits the sandbox has by its template. */
  sandboxLimits(): Promise<SandboxResources>
  /** See `applyResources`; false where the nodes cannot change limits of a running pod. */
  applyResources(resources: SandboxResources): Promise<boolean>
  /** See `applyImage`; false where the nodes cannot change the image of a running pod. */
  applyImage(image: string): Promise<boolean>
  /** A secret of the platform, for set-up. */
  findSecret(name: string): Promise<string | undefined>
  /** How package clients reach the mirror, where the platform has one. */
  readonly packageClients: PackageClients | undefined
  /** What environments have built, where the platform keeps snapshots. */
  readonly environments: EnvironmentBuilds | undefined
  readonly signal: AbortSignal
  now(): Date
  readonly log: Logger
}
