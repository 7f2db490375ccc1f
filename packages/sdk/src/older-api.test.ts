import { KubeError } from '@corral/resources'
import { beforeEach, expect, it } from 'vitest'
import { AgentSandboxClient } from './agent-sandbox-client.js'
import { VersionQuestion } from './older-api.js'
import { TestCluster } from './test-cluster.test-suite.js'

const extensions = '/apis/extensions.agents.x-k8s.io/v1alpha1/namespaces/default'
const sandboxes = '/apis/agents.x-k8s.io/v1alpha1/namespaces/default/sandboxes'

/** A cluster whose controllers are older than 1.0: it serves v1alpha1 alone. */
class OlderCluster extends TestCluster {
  override async handle(request: Parameters<TestCluster['handle']>[0]) {
    if (!request.path.includes('/v1beta1')) return super.handle(request)
    const value = { kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404, message: 'not served' }
    return { status: 404, headers: {}, body: { type: 'object' as const, value, json: () => JSON.stringify(value) } }
  }
}

let cluster: TestCluster
let client: AgentSandboxClient

beforeEach(async () => {
  cluster = new OlderCluster()
  client = new AgentSandboxClient({
    client: await new VersionQuestion(cluster.client()).client(),
    namespace: 'default',
  })
})

it('a cluster that serves v1alpha1 alone is spoken to in it', async () => {
  cluster.put(`${extensions}/sandboxwarmpools/p`, {
    metadata: { name: 'p', namespace: 'default' },
    spec: { replicas: 1, sandboxTemplateRef: { name: 't' } },
  } as never)
  cluster.react = (path, object) => {
    if (!path.includes('/sandboxclaims/')) return
    cluster.put(`${sandboxes}/warm-1`, { metadata: { name: 'warm-1', namespace: 'default' }, spec: {} } as never)
    const conditions = [{ type: 'Ready', status: 'True', reason: 'DependenciesReady', message: '' }]
    cluster.change(`${extensions}/sandboxclaims/${object.metadata.name}`, {
      status: { sandbox: { name: 'warm-1' }, conditions },
    })
  }
  const made = await client.sandboxes.create({ pool: 'p', name: 'mine' })
  expect(made.name).toBe('warm-1')
  expect(cluster.objects.get(`${extensions}/sandboxclaims/mine`)).toMatchObject({
    spec: { sandboxTemplateRef: { name: 't' }, warmpool: 'p' },
  })
  expect((await client.claims.get('mine')).spec.warmPoolRef.name).toBe('p')
  await client.sandboxes.objects.patch('warm-1', { spec: { operatingMode: 'Suspended' } })
  expect(cluster.objects.get(`${sandboxes}/warm-1`)).toMatchObject({ spec: { replicas: 0 } })
  expect((await client.sandboxes.objects.get('warm-1')).spec.operatingMode).toBe('Suspended')
  await made.delete()
  expect(await client.claims.exists('mine')).toBe(false)
})

it('a cluster that serves v1beta1 is spoken to as it is', async () => {
  const kube = new TestCluster().client()
  expect(await new VersionQuestion(kube).client()).toBe(kube)
})

it('a cluster that could not be asked at first is asked again, and once it has answered no more', async () => {
  let asked = 0
  const away = new OlderCluster()
  const answer = away.handle.bind(away)
  let isAway = true
  away.handle = async (request) => {
    asked += 1
    if (isAway) throw new KubeError('ConnectionLost', 'connect ECONNREFUSED')
    return answer(request)
  }
  const kube = away.client()
  const question = new VersionQuestion(kube)
  expect(await question.client()).toBe(kube)
  isAway = false
  const older = await question.client()
  expect(older).not.toBe(kube)
  const soFar = asked
  expect(await question.client()).toBe(older)
  expect(asked).toBe(soFar)
})
