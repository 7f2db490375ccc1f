import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  APPLY,
  configMap,
  configMaps,
  MERGE,
  openServer,
  type ServerCaller,
} from '../testing/server-caller.test-suite.js'

let api: ServerCaller
beforeAll(async () => {
  api = await openServer()
})
afterAll(() => api.server.close())

describe('a new server', () => {
  it.each(['default', 'kube-system', 'kube-public', 'kube-node-lease'])('has the namespace %s', async (name) => {
    const { value } = await api.call('GET', `/api/v1/namespaces/${name}`)
    expect(value.metadata.labels).toEqual({ 'kubernetes.io/metadata.name': name })
    expect(value.status.phase).toBe('Active')
    expect((await api.call('GET', `/api/v1/namespaces/${name}/serviceaccounts/default`)).status).toBe(200)
  })

  it('gives every new namespace its account', async () => {
    await api.call('POST', '/api/v1/namespaces', { metadata: { name: 'more' } })
    expect((await api.call('GET', '/api/v1/namespaces/more/serviceaccounts/default')).status).toBe(200)
  })
})

const rules = { rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] }
const roleRef = { kind: 'ClusterRole', name: 'x' }
const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'example/c' }] } }
const workload = { spec: { selector: { matchLabels: { a: 'b' } }, template } }

it.each<{ path: string; kind: string; part: object }>([
  { path: 'rbac.authorization.k8s.io/v1/clusterroles', kind: 'ClusterRole', part: rules },
  { path: 'rbac.authorization.k8s.io/v1/clusterrolebindings', kind: 'ClusterRoleBinding', part: { roleRef } },
  { path: 'rbac.authorization.k8s.io/v1/namespaces/default/roles', kind: 'Role', part: rules },
  { path: 'rbac.authorization.k8s.io/v1/namespaces/default/rolebindings', kind: 'RoleBinding', part: { roleRef } },
  { path: 'apps/v1/namespaces/default/deployments', kind: 'Deployment', part: workload },
  { path: 'apps/v1/namespaces/default/replicasets', kind: 'ReplicaSet', part: workload },
  { path: 'policy/v1/namespaces/default/poddisruptionbudgets', kind: 'PodDisruptionBudget', part: {} },
  { path: 'admissionregistration.k8s.io/v1/validatingwebhookconfigurations', kind: 'Validating', part: {} },
  { path: 'admissionregistration.k8s.io/v1/mutatingwebhookconfigurations', kind: 'Mutating', part: {} },
])('$kind is stored, listed, and said to be without effect', async ({ path, kind, part }) => {
  const created = await api.call('POST', `/apis/${path}`, { metadata: { name: 'one' }, ...part })
  expect(created.status).toBe(201)
  expect(created.response.headers.warning).toMatch(new RegExp(`^299 - "${kind}\\w* is stored but not acted upon`))
  expect((await api.call('GET', `/apis/${path}`)).value.items).toHaveLength(1)
})

it('a server that stops says 503 and when to come again', async () => {
  const stopping = await openServer()
  await stopping.server.close()
  const { status, value, response } = await stopping.call('GET', '/api/v1/namespaces')
  expect([status, value.reason, response.headers['retry-after']]).toEqual([503, 'ServiceUnavailable', '1'])
  expect((await stopping.call('GET', '/livez')).status).toBe(200)
  expect((await stopping.call('GET', '/readyz')).status).toBe(500)
})

it.each([MERGE, APPLY, 'application/strategic-merge-patch+json', 'application/json-patch+json'])(
  'a patch of thousands of levels is refused as the mistake of its sender, as %s',
  async (type) => {
    await api.call('POST', configMaps, configMap('flat'))
    let value: unknown = 'x'
    for (let level = 0; level < 20_000; level += 1) value = { a: value }
    const whole = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'flat' }, data: value }
    const body = type.includes('json-patch') ? [{ op: 'add', path: '/data', value }] : whole
    const answer = await api.call('PATCH', `${configMaps}/flat?fieldManager=deep`, body as object, type)
    expect(answer).toMatchObject({
      status: 400,
      value: { reason: 'BadRequest', message: 'the object is nested too deeply' },
    })
    expect((await api.call('GET', `${configMaps}/flat`)).value).not.toHaveProperty('data')
  },
)
