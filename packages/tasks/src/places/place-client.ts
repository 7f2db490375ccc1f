import type { KubeClient } from '@corral/kube'
import {
  AgentTasks,
  type KubeObject,
  Pods,
  type ResourceKind,
  SandboxClaims,
  Sandboxes,
  SandboxTemplates,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { taskLabel } from '../task-state/task-marks.js'

/** On claims in another cluster: whose they are. An owner reference to an object of another cluster would be collected. */
export const taskUidLabel = 'corral.dev/task-uid'

export type TaskClient = Pick<
  KubeClient,
  'find' | 'get' | 'list' | 'create' | 'update' | 'updateStatus' | 'patch' | 'delete'
>

const placed: ReadonlySet<ResourceKind> = new Set<ResourceKind>([
  SandboxClaims,
  Sandboxes,
  SandboxTemplates,
  SandboxWarmPools,
  Pods,
] as ResourceKind[])

/**
 * One client for a task whose sandbox is elsewhere: sandboxes and what belongs to them come from there, under the names
 * and the namespace they would have here, and everything else from home.
 */
export function placeClient(
  home: TaskClient,
  away: TaskClient,
  namespaces: { home: string; away: string },
): TaskClient {
  const isAway = (kind: ResourceKind<never>): boolean => placed.has(kind as unknown as ResourceKind)
  const there = <R extends { namespace?: string }>(ref: R): R => ({ ...ref, namespace: namespaces.away })
  return {
    find: async (kind, ref, options) => {
      if (!isAway(kind as ResourceKind<never>)) return home.find(kind, ref, options)
      const found = await away.find(kind, there(ref), options)
      return found && seenFromHome(found, namespaces.home)
    },
    get: async (kind, ref, options) =>
      isAway(kind as ResourceKind<never>)
        ? seenFromHome(await away.get(kind, there(ref), options), namespaces.home)
        : home.get(kind, ref, options),
    list: async (kind, options = {}) => {
      if (!isAway(kind as ResourceKind<never>)) return home.list(kind, options)
      const list = await away.list(kind, there(options))
      return { ...list, items: list.items.map((item) => seenFromHome(item, namespaces.home)) }
    },
    create: async (kind, object, options) =>
      isAway(kind as ResourceKind<never>)
        ? seenFromHome(await away.create(kind, sentAway(object, namespaces.away), options), namespaces.home)
        : home.create(kind, object, options),
    update: async (kind, object, options) =>
      isAway(kind as ResourceKind<never>)
        ? seenFromHome(await away.update(kind, sentAway(object, namespaces.away), options), namespaces.home)
        : home.update(kind, object, options),
    updateStatus: (kind, object, options) => home.updateStatus(kind, object, options),
    patch: async (kind, ref, patch, options) =>
      isAway(kind as ResourceKind<never>)
        ? seenFromHome(await away.patch(kind, there(ref), patch, options), namespaces.home)
        : home.patch(kind, ref, patch, options),
    delete: (kind, ref, options) =>
      isAway(kind as ResourceKind<never>) ? away.delete(kind, there(ref), options) : home.delete(kind, ref, options),
  }
}

/** The object with its task as owner, as claims here have it. Pure. */
export function seenFromHome<T extends KubeObject>(object: Stored<T>, namespace: string): Stored<T> {
  const { metadata } = object
  const uid = metadata.labels?.[taskUidLabel]
  const name = metadata.labels?.[taskLabel]
  const owner =
    uid === undefined || name === undefined
      ? []
      : [{ ...taskKind, name, uid, controller: true, blockOwnerDeletion: false }]
  const ownerReferences = [...(metadata.ownerReferences ?? []), ...owner]
  return {
    ...object,
    metadata: { ...metadata, namespace, ...(ownerReferences.length > 0 ? { ownerReferences } : {}) },
  }
}

/** The object with a label instead of an owner that does not exist there. Pure. */
export function sentAway<T extends KubeObject>(object: T, namespace: string): T {
  const { ownerReferences = [], ...metadata } = object.metadata ?? {}
  const isTask = ({ kind, apiVersion }: { kind: string; apiVersion: string }): boolean =>
    kind === taskKind.kind && apiVersion === taskKind.apiVersion
  const owner = ownerReferences.find(isTask)
  const others = ownerReferences.filter((each) => !isTask(each))
  return {
    ...object,
    metadata: {
      ...metadata,
      namespace,
      ...(owner ? { labels: { ...metadata.labels, [taskUidLabel]: owner.uid } } : {}),
      ...(others.length > 0 ? { ownerReferences: others } : {}),
    },
  }
}

const taskKind = { apiVersion: AgentTasks.apiVersion, kind: AgentTasks.kind }
