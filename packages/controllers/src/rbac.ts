import type { ClusterRole, PolicyRule } from '@corral/resources'

const rule = (apiGroups: string[], resources: string[], verbs: string[]): PolicyRule => ({
  apiGroups,
  resources,
  verbs,
})

const read = ['get', 'list', 'watch']

/** What the Sandbox controller may do. Every verb here is used by it, and none it uses is missing. */
export const coreRole: ClusterRole = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: 'agent-sandbox-controller' },
  rules: [
    rule([''], ['pods', 'services'], ['create', 'delete', ...read, 'patch']),
    rule([''], ['services'], ['update']),
    rule([''], ['persistentvolumeclaims'], ['create', ...read, 'patch']),
    rule(['events.k8s.io'], ['events'], ['create']),
    rule(['agents.x-k8s.io'], ['sandboxes'], ['delete', ...read, 'patch']),
    rule(['agents.x-k8s.io'], ['sandboxes/status'], ['patch']),
    // Owner references that block the owner's deletion need the right to finalize it.
    rule(['agents.x-k8s.io'], ['sandboxes/finalizers'], ['update']),
    rule(['coordination.k8s.io'], ['leases'], ['create', 'get', 'update']),
  ],
}

/** What the claim, template and pool controllers may do on top of it. */
export const extensionsRole: ClusterRole = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: 'agent-sandbox-controller-extensions' },
  rules: [
    rule(['agents.x-k8s.io'], ['sandboxes'], ['create']),
    rule(['extensions.agents.x-k8s.io'], ['sandboxclaims'], ['delete', ...read, 'patch']),
    rule(['extensions.agents.x-k8s.io'], ['sandboxtemplates'], [...read, 'patch']),
    rule(['extensions.agents.x-k8s.io'], ['sandboxwarmpools'], read),
    rule(['extensions.agents.x-k8s.io'], ['sandboxclaims/status', 'sandboxwarmpools/status'], ['patch']),
    rule(
      ['extensions.agents.x-k8s.io'],
      ['sandboxclaims/finalizers', 'sandboxtemplates/finalizers', 'sandboxwarmpools/finalizers'],
      ['update'],
    ),
    rule(['networking.k8s.io'], ['networkpolicies'], ['create', 'delete', ...read, 'update']),
  ],
}

/** The manifests of `config/rbac`: both roles, bound to the manager's service account. */
export function rbacManifests(namespace = 'agent-sandbox-system', account = 'agent-sandbox-controller'): object[] {
  const binding = (role: ClusterRole): object => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: role.metadata?.name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role.metadata?.name },
    subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
  })
  const serviceAccount = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account, namespace } }
  return [serviceAccount, coreRole, binding(coreRole), extensionsRole, binding(extensionsRole)]
}
