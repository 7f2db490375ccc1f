import type { TaskEvent } from '@corral/protocol'
import type { AgentTask, Environment, EnvironmentBuild, Stored } from '@corral/resources'
import type { BuiltSnapshot } from './choose-snapshot.js'
import type { EnvironmentIdentity } from './environment-object.js'
import type { SandboxFiles } from './snapshot-trees.js'

/** What tasks see of environments. */
export interface EnvironmentBuilds {
  /** The environment, made where there is none yet. */
  ensure(identity: EnvironmentIdentity): Promise<Stored<Environment>>
  /** What it has that a task can be given. */
  snapshots(environment: Stored<Environment>): BuiltSnapshot[]
  find(snapshot: string): BuiltSnapshot | undefined
  /** Whether tasks that declare no environment may be given a checkout as a snapshot. */
  givesCheckouts(): boolean
  /** Those of all environments that have this key, the newest first. */
  withKey(key: string): BuiltSnapshot[]
  /** Asks for a build and waits for no end. One that runs, or was made for the same request, is enough. */
  request(environment: Stored<Environment>, request: string): Promise<void>
  /**
   * The end of the build that runs, or of one that is made for this request; the same request again answers the same build.
   * `onEvents` gets what it says meanwhile, from its beginning.
   */
  build(
    environment: Stored<Environment>,
    request: string,
    options: { signal: AbortSignal; onEvents: (events: readonly TaskEvent[]) => Promise<void> },
  ): Promise<EnvironmentBuild>
  /**
   * Gives the snapshot to the task's sandbox, which may run already. False where the snapshot went away meanwhile. Throws where
   * the node cannot.
   */
  attach(sandbox: SandboxFiles, snapshot: string): Promise<boolean>
  /** The snapshot the task's sandbox has been told to have. */
  attached(sandbox: SandboxFiles): Promise<string | undefined>
  /** What the sandbox's root file system is, beyond what can be read inside. */
  rootOf(task: Stored<AgentTask>): Promise<string>
}
