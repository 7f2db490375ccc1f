import type { KubeClient } from '@corral/kube'
import type { CreateTaskRequest, GitIdentity } from '@corral/protocol'
import type { ModelProviders } from './broker/model-providers.js'
import type { SandboxPlaces } from './places/sandbox-place.js'
import type { TaskRecords } from './records/task-records.js'
import type { BringHome } from './results/bring-home.js'
import type { TreeReader } from './results/tree-reader.js'
import type { TaskMetrics } from './task-metrics.js'

export interface TaskServiceOptions {
  client: KubeClient
  namespace: string
  records: Pick<TaskRecords, 'events' | 'of'>
  defaultAgent: string
  /** The waiting tasks by uid, where the controller runs in this process. */
  queue?: () => ReadonlyMap<string, { position: number; reason: string }>
  /** The providers and endpoints a request may name; absent: the name is looked at when the agent starts. */
  providers?: ModelProviders
  /**
   * Whether requests may name repositories on this machine's disk, by path or file://. Such a repository is looked at
   * before the task is taken.
   */
  localRepositories: boolean
  /** Whether nodes let a task reach addresses by name, as ours do: a request for it is refused where this is false. */
  hasEgressByName?: boolean
  /** Whether sandboxes of the default pool have this program; absent where that is not known before one runs. */
  isInstalled?(program: string): Promise<boolean>
  /** Other clusters whose sandboxes a request may ask for. */
  places?: SandboxPlaces
  /** The isolation tier of sandboxes, where the platform knows it. */
  isolation?: string | undefined
  /** Who commits where neither request nor project says: absent, Corral does. `path` is a repository on this machine. */
  findIdentity?(path: string | undefined): Promise<GitIdentity | undefined>
  /** What a request gets that neither it nor its project says. */
  defaults?(): Promise<Pick<CreateTaskRequest, 'timeout_seconds' | 'limits' | 'runtime_class_name'>>
  /** Reads files of results; absent: only their patches are known. */
  trees?: TreeReader
  /** Brings changes into work trees of this machine; absent: the server has none. */
  bringHome?: BringHome | undefined
  /** Whether git of this machine has git-lfs; absent where that is not known. */
  hasGitLfs?(): Promise<boolean>
  metrics?: TaskMetrics
}
