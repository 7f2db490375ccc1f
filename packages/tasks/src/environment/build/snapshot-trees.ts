import type { KubeClient } from '@corral/kube'
import type { SealRequest, SnapshotStore } from '@corral/ports'
import type { AgentTask, Stored } from '@corral/resources'
import type { SandboxContext } from '../sandbox-context.js'
import { attachedSnapshot, attachSnapshot } from './attach-snapshot.js'

/** The sandbox of a task or a build, as far as its files are concerned. */
export type SandboxFiles = Pick<SandboxContext, 'task' | 'openSandbox' | 'findWorkspace' | 'signal'>

/**
 * How the directories of a build are kept and given to later sandboxes: by the node that runs both, or as archives where nodes are
 * not ours.
 */
export interface SnapshotTrees extends Pick<SnapshotStore, 'list' | 'find' | 'inUse' | 'remove'> {
  /** False while nothing is known of what was built. */
  isReady(): boolean
  /** Keeps directories of the build's sandbox, which is not used afterwards. Rejects with a `SnapshotError`. */
  seal(request: SealRequest, sandbox: SandboxFiles): Promise<void>
  /** See `EnvironmentBuilds`. */
  attach(sandbox: SandboxFiles, snapshot: string): Promise<boolean>
  /** The snapshot the sandbox has, or is about to have. */
  attached(sandbox: SandboxFiles): Promise<string | undefined>
  /** What the sandbox's root file system is, beyond what can be read inside; empty where that tells enough. */
  rootOf(task: Stored<AgentTask>): Promise<string>
  /** Whether a plain checkout is worth keeping. */
  givesCheckouts(): boolean
}

/** Kept by the node of this platform: renamed away from the build's pod, attached copy-on-write. */
export function nodeTrees(
  client: Pick<KubeClient, 'find' | 'patch'>,
  snapshots: () => SnapshotStore | undefined,
): SnapshotTrees {
  const store = (): SnapshotStore => {
    const found = snapshots()
    if (!found) throw new Error('the node is not ready')
    return found
  }
  return {
    isReady: () => snapshots() !== undefined,
    list: () => store().list(),
    find: (name) => store().find(name),
    inUse: (name) => store().inUse(name),
    remove: (name) => store().remove(name),
    seal: async (request) => {
      await store().seal(request)
    },
    attach: ({ task, signal }, snapshot) => attachSnapshot(client, task, snapshot, signal),
    attached: ({ task }) => attachedSnapshot(client, task),
    rootOf: async () => '',
    givesCheckouts: () => snapshots()?.canRename === true,
  }
}
