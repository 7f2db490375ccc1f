/**
 * One resource and what a process of ours does with it. Two verbs the manager never sends are asked for by clusters that
 * guard owner references: `update` on an owner's finalizers to block its deletion, `delete` on what it adopts.
 */
export interface Permission {
  readonly group: string
  readonly resource: string
  readonly verbs: readonly string[]
  readonly names?: readonly string[]
}

/** Shared with upstream's manager, so that only one of the two acts on a cluster. */
const LEASE = 'a3317529.agent-sandbox.x-k8s.io'
const RBAC = 'rbac.authorization.k8s.io'
const AGENTS = 'agents.x-k8s.io'
const EXTENSIONS = 'extensions.agents.x-k8s.io'

/** What the Sandbox controller does. */
export const corePermissions: readonly Permission[] = [
  { group: '', resource: 'persistentvolumeclaims', verbs: ['create', 'delete', 'list', 'patch', 'watch'] },
  { group: '', resource: 'pods', verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch'] },
  { group: '', resource: 'services', verbs: ['create', 'delete', 'list', 'patch', 'update', 'watch'] },
  { group: 'events.k8s.io', resource: 'events', verbs: ['create', 'patch'] },
  { group: AGENTS, resource: 'sandboxes', verbs: ['delete', 'list', 'patch', 'watch'] },
  { group: AGENTS, resource: 'sandboxes/finalizers', verbs: ['update'] },
  { group: AGENTS, resource: 'sandboxes/status', verbs: ['patch'] },
]

/** What the claim, template and pool controllers do besides. */
export const extensionPermissions: readonly Permission[] = [
  { group: AGENTS, resource: 'sandboxes', verbs: ['create', 'get'] },
  { group: EXTENSIONS, resource: 'sandboxclaims', verbs: ['delete', 'get', 'list', 'patch', 'watch'] },
  { group: EXTENSIONS, resource: 'sandboxclaims/finalizers', verbs: ['update'] },
  { group: EXTENSIONS, resource: 'sandboxclaims/status', verbs: ['patch'] },
  { group: EXTENSIONS, resource: 'sandboxtemplates', verbs: ['list', 'patch', 'watch'] },
  { group: EXTENSIONS, resource: 'sandboxtemplates/finalizers', verbs: ['update'] },
  { group: EXTENSIONS, resource: 'sandboxwarmpools', verbs: ['list', 'watch'] },
  { group: EXTENSIONS, resource: 'sandboxwarmpools/finalizers', verbs: ['update'] },
  { group: EXTENSIONS, resource: 'sandboxwarmpools/status', verbs: ['patch'] },
  { group: 'networking.k8s.io', resource: 'networkpolicies', verbs: ['create', 'delete', 'list', 'update', 'watch'] },
]

/** What `--explain-not-ready` reads besides; who does not use it needs none of it. */
export const explainPermissions: readonly Permission[] = [{ group: '', resource: 'events', verbs: ['list', 'watch'] }]

/** The election, in the manager's own namespace only. */
export const electionPermissions: readonly Permission[] = [
  { group: 'coordination.k8s.io', resource: 'leases', verbs: ['create'] },
  { group: 'coordination.k8s.io', resource: 'leases', verbs: ['get', 'update'], names: [LEASE] },
]

/**
 * What `corral server` does inside a cluster, in its own namespace only: no Secret and nothing cluster-wide. It reaches
 * sandboxes by their address and so forwards no port and runs no command.
 */
export const serverPermissions: readonly Permission[] = [
  {
    group: 'corral.dev',
    resource: 'agenttasks',
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  },
  { group: 'corral.dev', resource: 'agenttasks/status', verbs: ['update'] },
  {
    group: 'corral.dev',
    resource: 'environments',
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  },
  { group: 'corral.dev', resource: 'environments/status', verbs: ['update'] },
  { group: 'corral.dev', resource: 'projects', verbs: ['create', 'delete', 'get', 'list', 'update'] },
  { group: EXTENSIONS, resource: 'sandboxclaims', verbs: ['create', 'delete', 'get', 'list', 'update', 'watch'] },
  { group: EXTENSIONS, resource: 'sandboxwarmpools', verbs: ['create', 'get', 'list', 'patch'] },
  { group: EXTENSIONS, resource: 'sandboxtemplates', verbs: ['get'] },
  { group: AGENTS, resource: 'sandboxes', verbs: ['get', 'list'] },
  { group: '', resource: 'pods', verbs: ['get', 'list'] },
  // The pages of the web interface show the events of a sandbox.
  { group: '', resource: 'events', verbs: ['list'] },
  { group: 'coordination.k8s.io', resource: 'leases', verbs: ['create'] },
  { group: 'coordination.k8s.io', resource: 'leases', verbs: ['get', 'update'], names: ['corral-task-controller'] },
]

/** A role with these permissions, in a namespace or, without one, for the whole cluster. */
export function roleObject(name: string, permissions: readonly Permission[], namespace?: string): object {
  const rules = permissions.map(({ group, resource, verbs, names }) => ({
    apiGroups: [group],
    resources: [resource],
    ...(names && { resourceNames: names }),
    verbs,
  }))
  const kind = namespace === undefined ? 'ClusterRole' : 'Role'
  return { apiVersion: `${RBAC}/v1`, kind, metadata: place(name, namespace), rules }
}

/** Gives the role of the same name to a ServiceAccount. */
export function bindingObject(name: string, account: { name: string; namespace: string }, namespace?: string): object {
  const kind = namespace === undefined ? 'ClusterRole' : 'Role'
  return {
    apiVersion: `${RBAC}/v1`,
    kind: `${kind}Binding`,
    metadata: place(name, namespace),
    roleRef: { apiGroup: RBAC, kind, name },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  }
}

function place(name: string, namespace: string | undefined): object {
  return namespace === undefined ? { name } : { name, namespace }
}
