import { type Asked, container, core, create, get, group, of, patch, pod, store } from './asked.js'

const ask = (method: string, path: string, body?: unknown): Asked => ({ method, path, body })
const changing = `${core}/pods/changing`
const gated = `${core}/pods/gated`

/** Which part of a pod may change, and in which direction. */
const changes: readonly Asked[] = [
  store(
    `${core}/pods`,
    pod({ tolerations: [{ key: 'a', operator: 'Exists' }], activeDeadlineSeconds: 50 }, { name: 'changing' }),
  ),
  ...[{ activeDeadlineSeconds: 20 }, { activeDeadlineSeconds: 80 }, { activeDeadlineSeconds: null }].map((spec) =>
    patch(changing, 'merge', { spec }),
  ),
  ...[{ hostname: 'x' }, { nodeName: 'n' }, { schedulingGates: [{ name: 'a.b/c' }] }].map((spec) =>
    patch(changing, 'merge', { spec }),
  ),
  ...[
    { op: 'replace', path: '/spec/containers/0/image', value: 'example/d:2' },
    { op: 'replace', path: '/spec/tolerations/0/key', value: 'q' },
    { op: 'add', path: '/spec/tolerations/-', value: { key: 'z', operator: 'Exists' } },
    { op: 'add', path: '/spec/containers/0/env', value: [{ name: 'A' }] },
  ].map((operation) => patch(changing, 'json', [operation])),
  patch(changing, 'strategic', { spec: { containers: [{ name: 'd', image: 'x' }] } }),
]

const target = { kind: 'Node', name: 'n1' }
const binding = (name: string): object => ({ apiVersion: 'v1', kind: 'Binding', metadata: { name }, target })
const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'changing' } }

/** A gate holds a pod back until it is removed; in the meantime the choice of nodes may become narrower. */
const gates: readonly Asked[] = [
  store(`${core}/pods`, pod({ schedulingGates: [{ name: 'a.b/c' }], nodeSelector: { a: 'b' } }, { name: 'gated' })),
  patch(gated, 'json', [{ op: 'add', path: '/spec/schedulingGates/-', value: { name: 'd.e/f' } }]),
  patch(gated, 'merge', { spec: { nodeSelector: { a: 'c' } } }),
  patch(gated, 'merge', { spec: { nodeSelector: { b: 'c' } } }),
  patch(gated, 'merge', { spec: { affinity: { nodeAffinity: {} } } }),
  patch(gated, 'merge', { spec: { hostname: 'x' } }),
  patch(gated, 'merge', { spec: { schedulingGates: null } }),
  ask('POST', `${gated}/binding?dryRun=All`, binding('gated')),
]

const actions: readonly Asked[] = [
  ask('POST', `${changing}/eviction?dryRun=All`, eviction),
  ask('POST', `${changing}/eviction?dryRun=All`, {}),
  ask('POST', `${changing}/eviction?dryRun=All`, { ...eviction, deleteOptions: { preconditions: { uid: 'x' } } }),
  ask('POST', `${changing}/binding?dryRun=All`, binding('changing')),
  ask('POST', `${changing}/binding?dryRun=All`, { ...binding('changing'), target: { kind: 'Pod', name: 'n1' } }),
  ask('POST', `${changing}/binding`, binding('changing')),
  ask('POST', `${changing}/binding`, { ...binding('changing'), target: { ...target, name: 'n2' } }),
]

const refused: readonly Asked[] = [
  create(`${core}/pods`, pod({ containers: [{ ...container, ports: [{ containerPort: 70_000, name: 'UPPER' }] }] })),
  create(
    `${core}/pods`,
    pod({ hostNetwork: true, containers: [{ ...container, ports: [{ containerPort: 80, hostPort: 81 }] }] }),
  ),
]

const several = { containers: [container, { ...container, name: 'd' }] }
const annotations = { 'kubectl.kubernetes.io/default-container': 'd' }

/** Which of several containers is meant has to be said; only kubectl itself reads the annotation. */
const unnamed: readonly Asked[] = [
  store(`${core}/pods`, pod(several, { name: 'several', annotations })),
  get(`${core}/pods/several/log`),
  get(`${core}/pods/several/exec?command=x&stdout=1`),
]

const scale = `${group('apps/v1')}/deployments/kept/scale`
const scaled = (part: object): object => ({
  ...of('autoscaling/v1', 'Scale'),
  metadata: { name: 'kept' },
  spec: { replicas: 3 },
  ...part,
})

const scales: readonly Asked[] = [
  store(`${group('apps/v1')}/deployments`, {
    ...of('apps/v1', 'Deployment'),
    metadata: { name: 'kept' },
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [container] } },
    },
  }),
  ...[
    { metadata: { name: 'kept', resourceVersion: '1' } },
    { metadata: { name: 'other' } },
    { spec: { replicas: -3 } },
    { apiVersion: 'apps/v1', kind: 'Deployment' },
  ].map((part) => ask('PUT', `${scale}?dryRun=All`, scaled(part))),
  patch(scale, 'merge', { spec: { replicas: 'x' } }),
  patch(scale.replace('kept', 'none'), 'merge', { spec: { replicas: 7 } }),
]

/** Paths that exist, asked for something they do not do. */
const methods: readonly Asked[] = [
  ask('POST', '/version', {}),
  ask('DELETE', '/api'),
  ask('POST', '/api/v1', {}),
  ask('PUT', `${changing}/exec`, {}),
  ask('DELETE', `${changing}/log`),
  ask('GET', `${changing}/eviction`),
  ask('GET', `${core}/serviceaccounts/default/token`),
  ask('GET', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'),
  get('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x'),
]

export const podRequests: readonly Asked[] = [
  ...changes,
  ...gates,
  ...refused,
  ...unnamed,
  ...actions,
  ...scales,
  ...methods,
]
