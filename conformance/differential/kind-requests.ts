import { type Asked, container, core, create, group, of, patch, pod, store } from './asked.js'

const apps = group('apps/v1')
const rbac = group('rbac.authorization.k8s.io/v1')
const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [container] } }
const deployment = (spec: object): object => ({
  ...of('apps/v1', 'Deployment'),
  spec: { selector: { matchLabels: { a: 'b' } }, template, ...spec },
})
const named = (name: string, object: object): object => ({ ...object, metadata: { name } })
const ask = (method: string, path: string, body?: unknown): Asked => ({ method, path, body })

/** Kinds that nothing acts on here are still refused where Kubernetes refuses them. */
const inert: readonly Asked[] = [
  ...[
    { replicas: -1 },
    { selector: {} },
    { selector: undefined },
    { selector: { matchLabels: { x: 'y' } } },
    { strategy: { type: 'Other' } },
    { strategy: { type: 'Recreate', rollingUpdate: { maxSurge: 1 } } },
    { template: { ...template, spec: { containers: [] } } },
    { template: { ...template, spec: { ...template.spec, restartPolicy: 'Never' } } },
    { minReadySeconds: -1 },
    { template: undefined },
  ].map((spec) => create(`${apps}/deployments`, deployment(spec))),
  ...[
    { rules: [{}] },
    { rules: [{ verbs: ['get'] }] },
    { rules: [{ verbs: ['get'], resources: ['pods'] }] },
    { rules: [{ verbs: ['get'], nonResourceURLs: ['/x'] }] },
  ].map((part) => create(`${rbac}/roles`, of('rbac.authorization.k8s.io/v1', 'Role', part))),
  ...[
    {},
    { roleRef: { kind: 'Other', name: 'y' } },
    { roleRef: { kind: 'Role', name: 'y' }, subjects: [{ kind: 'Other', name: 'y' }] },
    { roleRef: { kind: 'Role', name: 'y' }, subjects: [{ kind: 'Group', name: 'y', apiGroup: 'x' }] },
  ].map((part) => create(`${rbac}/rolebindings`, of('rbac.authorization.k8s.io/v1', 'RoleBinding', part))),
  ...[
    {},
    { provisioner: 'a b' },
    { provisioner: 'x', reclaimPolicy: 'Other' },
    { provisioner: 'x', volumeBindingMode: 'Other' },
  ].map((part) => create('/apis/storage.k8s.io/v1/storageclasses', of('storage.k8s.io/v1', 'StorageClass', part))),
]

const budgets: readonly Asked[] = [
  { minAvailable: -1 },
  { minAvailable: 1, maxUnavailable: 1 },
  { minAvailable: 'x' },
  { minAvailable: '50%' },
  { unhealthyPodEvictionPolicy: 'Other' },
].map((part) => {
  const spec = { selector: { matchLabels: { a: 'b' } }, ...part }
  return create(`${group('policy/v1')}/poddisruptionbudgets`, of('policy/v1', 'PodDisruptionBudget', { spec }))
})

const events: readonly Asked[] = ['other', ''].map((namespace) =>
  create(`${core}/events`, of('v1', 'Event', { involvedObject: { kind: 'Pod', name: 'p', namespace } })),
)

const reviews: readonly Asked[] = [
  ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', { spec: {} }),
  ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
    spec: { resourceAttributes: { verb: 'get', resource: 'pods' }, nonResourceAttributes: { path: '/x' } },
  }),
  ask('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec: { resourceAttributes: { verb: 'get' } } }),
  ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', { spec: {} }),
  ask('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: {} }),
  ask('POST', `${group('authorization.k8s.io/v1')}/localsubjectaccessreviews`, {
    spec: { user: 'x', resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'other' } },
  }),
]

const webhooks = '/apis/admissionregistration.k8s.io/v1'
const webhook = {
  name: 'a.b.c',
  clientConfig: { service: { name: 'x', namespace: 'y' } },
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
}
const volume = { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } }

/** Kinds of a whole cluster: nodes, volumes, webhooks. */
const clusterKinds: readonly Asked[] = [
  ...['Validating', 'Mutating'].flatMap((kind) =>
    [webhook, { name: 'x' }].map((part) =>
      create(
        `${webhooks}/${kind.toLowerCase()}webhookconfigurations`,
        of('admissionregistration.k8s.io/v1', `${kind}WebhookConfiguration`, { webhooks: [part] }),
      ),
    ),
  ),
  ...[{}, volume, { ...volume, capacity: { storage: '0' }, hostPath: { path: '/x' } }].map((spec) =>
    create('/api/v1/persistentvolumes', of('v1', 'PersistentVolume', { spec })),
  ),
  ...[{ key: 'a', effect: 'Nope' }, { key: 'a' }, { effect: 'NoSchedule' }].map((taint) =>
    create('/api/v1/nodes', of('v1', 'Node', { spec: { taints: [taint] } })),
  ),
]

const tokenRequest = (part: object): Asked =>
  ask('POST', `${core}/serviceaccounts/default/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    ...part,
  })
const bound = (part: object): Asked => tokenRequest({ spec: { boundObjectRef: { apiVersion: 'v1', ...part } } })

/** Tokens that are to die with something which is not there, or are meant for another account. */
const tokens: readonly Asked[] = [
  tokenRequest({ metadata: { name: 'other' }, spec: {} }),
  bound({ kind: 'Pod', name: 'none' }),
  bound({ kind: 'Secret', name: 'none' }),
  bound({ kind: 'Other', name: 'none' }),
]

const namespaces: readonly Asked[] = [
  ask('DELETE', '/api/v1/namespaces/default?dryRun=All'),
  ask('DELETE', '/api/v1/namespaces/kube-system?dryRun=All'),
  patch('/api/v1/namespaces/{ns}/status', 'merge', { status: { phase: 'Other' } }),
  patch('/api/v1/namespaces/{ns}', 'merge', { spec: { finalizers: [] } }),
  patch('/api/v1/namespaces/{ns}', 'merge', { metadata: { labels: { 'kubernetes.io/metadata.name': 'x' } } }),
]

const claim = of('v1', 'PersistentVolumeClaim', {
  spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'x', resources: { requests: { storage: '1Gi' } } },
})
const binding = of('rbac.authorization.k8s.io/v1', 'RoleBinding', { roleRef: { kind: 'ClusterRole', name: 'view' } })

/** Fields that stay what they are. */
const immutable: readonly Asked[] = [
  store(`${core}/configmaps`, {
    ...of('v1', 'ConfigMap', { data: { a: 'b' }, immutable: true }),
    metadata: { name: 'fixed' },
  }),
  store(`${core}/secrets`, named('typed', of('v1', 'Secret', { type: 'x' }))),
  store(`${core}/services`, named('address', of('v1', 'Service', { spec: { ports: [{ port: 80 }] } }))),
  store(`${core}/pods`, pod({ tolerations: [{ key: 'q', operator: 'Exists' }] }, { name: 'fixed' })),
  patch(`${core}/configmaps/fixed`, 'merge', { data: { a: 'c' } }),
  patch(`${core}/configmaps/fixed`, 'merge', { immutable: false }),
  patch(`${core}/configmaps/fixed`, 'merge', { metadata: { labels: { x: 'y' } } }),
  patch(`${core}/secrets/typed`, 'merge', { type: 'y' }),
  patch(`${core}/services/address`, 'merge', { spec: { clusterIP: '10.0.0.200' } }),
  patch(`${core}/services/address`, 'merge', { spec: { clusterIP: 'None' } }),
  patch(`${core}/services/address`, 'merge', { spec: { ports: null } }),
  patch(`${core}/pods/fixed`, 'merge', { spec: { terminationGracePeriodSeconds: 5 } }),
  patch(`${core}/pods/fixed`, 'merge', { spec: { activeDeadlineSeconds: 5 } }),
  patch(`${core}/pods/fixed`, 'merge', { spec: { tolerations: [] } }),
  patch(`${core}/pods/fixed`, 'merge', { status: { phase: 'Running' } }),
  store(`${core}/persistentvolumeclaims`, named('fixed', claim)),
  patch(`${core}/persistentvolumeclaims/fixed`, 'merge', { spec: { resources: { requests: { storage: '2Gi' } } } }),
  patch(`${core}/persistentvolumeclaims/fixed`, 'merge', { spec: { storageClassName: 'y' } }),
  store(`${rbac}/rolebindings`, named('fixed', binding)),
  patch(`${rbac}/rolebindings/fixed`, 'merge', { roleRef: { name: 'edit' } }),
  create(`${group('coordination.k8s.io/v1')}/leases`, {
    ...of('coordination.k8s.io/v1', 'Lease'),
    spec: { acquireTime: '2026-01-01T00:00:00Z' },
  }),
]

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const definition = (spec: object, schema: object = { type: 'object' }): object => ({
  ...of('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
  metadata: { name: 'things.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'things', kind: 'Thing' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
    ...spec,
  },
})
const withField = (field: object): object =>
  definition({}, { type: 'object', properties: { spec: { type: 'object', properties: { a: field } } } })

/** Definitions that make no sense. */
const refusedDefinitions: readonly Asked[] = [
  ...[
    { scope: 'Other' },
    { names: { plural: 'Things', kind: 'Thing' } },
    { names: { plural: 'things', kind: 'Thing', listKind: 'Thing' } },
    { preserveUnknownFields: true },
  ].map((spec) => create(definitions, definition(spec))),
  ...[
    { type: 'strnig' },
    { type: 'array' },
    { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'other' },
    { type: 'array', items: { type: 'object' }, 'x-kubernetes-list-type': 'set' },
    { type: 'array', items: { type: 'object' }, 'x-kubernetes-list-type': 'map' },
    { type: 'object', properties: { b: { type: 'string' } }, additionalProperties: { type: 'string' } },
    { type: 'string', 'x-kubernetes-validations': [{}] },
    { type: 'string', 'x-kubernetes-validations': [{ rule: 'true', reason: 'Other' }] },
  ].map((field) => create(definitions, withField(field))),
  create(
    definitions,
    definition(
      {},
      { type: 'object', properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } } },
    ),
  ),
  create(definitions, { ...definition({ group: 'example.k8s.io' }), metadata: { name: 'things.example.k8s.io' } }),
]

export const kinds: readonly Asked[] = [
  ...inert,
  ...budgets,
  ...events,
  ...reviews,
  ...clusterKinds,
  ...tokens,
  ...namespaces,
  ...immutable,
  ...refusedDefinitions,
]
