/**
 * Writes what `corral controller` may do, and everything that a cluster needs to run it:
 *   npx tsx --conditions=corral-source scripts/generate/rbac.ts
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { dump } from 'js-yaml'
import { crdManifests } from '../../packages/resources/src/crd/manifests.js'

const CONFIG = join(import.meta.dirname, '../../config')
const NAME = 'corral-controller'
export const NAMESPACE = 'corral-system'
/** Shared with upstream's manager, so that only one of the two acts on a cluster. */
const LEASE = 'a3317529.agent-sandbox.x-k8s.io'
const RBAC = 'rbac.authorization.k8s.io'

/**
 * One resource and what the manager does with it. Two verbs it never sends are asked for by clusters that guard owner
 * references: `update` on an owner's finalizers to block its deletion, `delete` on what it adopts.
 */
export interface Permission {
  readonly group: string
  readonly resource: string
  readonly verbs: readonly string[]
  readonly names?: readonly string[]
}

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

/** Path below `config` → content, for every file. */
export function rbacFiles(): Map<string, string> {
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME, namespace: NAMESPACE } }
  const core = clusterRole(NAME, corePermissions)
  const extensions = clusterRole(`${NAME}-extensions`, extensionPermissions)
  const election = [role('Role', `${NAME}-election`, electionPermissions), binding('RoleBinding', `${NAME}-election`)]
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }
  const crds = crdManifests('cluster').filter(({ spec }) => spec.group.endsWith(AGENTS))
  return new Map([
    ['rbac/service-account.yaml', documents([namespace, account])],
    ['rbac/controller.yaml', documents(core)],
    ['rbac/extensions.yaml', documents(extensions)],
    ['rbac/leader-election.yaml', documents(election)],
    ['rbac/explain-not-ready.yaml', documents(clusterRole(`${NAME}-explain`, explainPermissions))],
    [
      'install/corral-controller.yaml',
      documents([namespace, ...crds, account, ...core, ...extensions, ...election, service, deployment]),
    ],
  ])
}

function clusterRole(name: string, permissions: readonly Permission[]): object[] {
  return [role('ClusterRole', name, permissions), binding('ClusterRoleBinding', name)]
}

function role(kind: 'Role' | 'ClusterRole', name: string, permissions: readonly Permission[]): object {
  const rules = permissions.map(({ group, resource, verbs, names }) => ({
    apiGroups: [group],
    resources: [resource],
    ...(names && { resourceNames: names }),
    verbs,
  }))
  return { apiVersion: `${RBAC}/v1`, kind, metadata: place(kind, name), rules }
}

function binding(kind: 'RoleBinding' | 'ClusterRoleBinding', name: string): object {
  return {
    apiVersion: `${RBAC}/v1`,
    kind,
    metadata: place(kind, name),
    roleRef: { apiGroup: RBAC, kind: kind.replace('Binding', ''), name },
    subjects: [{ kind: 'ServiceAccount', name: NAME, namespace: NAMESPACE }],
  }
}

const place = (kind: string, name: string): object =>
  kind.startsWith('Cluster') ? { name } : { name, namespace: NAMESPACE }

const labels = { app: NAME }
const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: NAME, namespace: NAMESPACE, labels },
  spec: { selector: labels, ports: [{ name: 'metrics', port: 8080, targetPort: 'metrics' }] },
}
const probe = (path: string): object => ({ httpGet: { path, port: 'health' }, periodSeconds: 10 })
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: NAME, namespace: NAMESPACE, labels },
  spec: {
    replicas: 1,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        serviceAccountName: NAME,
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          {
            name: NAME,
            // The image is the operator's own: any with Node and this repository's bundle, started as `corral`.
            image: 'corral:0.1.0',
            args: ['controller', '--extensions', '--leader-elect=true'],
            ports: [
              { name: 'metrics', containerPort: 8080 },
              { name: 'health', containerPort: 8081 },
            ],
            livenessProbe: probe('/healthz'),
            readinessProbe: probe('/readyz'),
            resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '1Gi' } },
            securityContext: {
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ['ALL'] },
            },
          },
        ],
      },
    },
  },
}

function documents(objects: readonly object[]): string {
  const texts = objects.map((object) => `---\n${dump(object, { lineWidth: -1, noRefs: true })}`)
  return `# Generated by scripts/generate/rbac.ts.\n${texts.join('')}`
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const [name, text] of rbacFiles()) {
    mkdirSync(dirname(join(CONFIG, name)), { recursive: true })
    writeFileSync(join(CONFIG, name), text)
  }
}
