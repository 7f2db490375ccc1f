import type { Condition, Sandbox } from '@corral/resources'
import { expect, it } from 'vitest'
import { AgentSandboxClient } from './agent-sandbox-client.js'
import type { ConnectionOptions } from './connection/connection-options.js'
import { TestCluster } from './test-cluster.test-suite.js'

const sandboxes = '/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes'
const claims = '/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims'
const spec = { podTemplate: { spec: { containers: [{ name: 'sandbox', image: 'debian' }] } } }

function ready(status: 'True' | 'False'): Condition {
  const lastTransitionTime = '2026-01-01T00:00:00Z'
  return { type: 'Ready', status, reason: 'Starting', message: '', lastTransitionTime, observedGeneration: 1 }
}

it.each<{ what: string; sandbox: string; connection: ConnectionOptions['type']; isReadWhileStarting: boolean }>([
  { what: 'made for the claim', sandbox: 'mine', connection: 'auto', isReadWhileStarting: true },
  { what: 'of a warm pool', sandbox: 'default-x7k2p', connection: 'auto', isReadWhileStarting: false },
  {
    what: 'reached by the address in its status',
    sandbox: 'mine',
    connection: 'in-cluster-pod-ip',
    isReadWhileStarting: false,
  },
])('a sandbox $what is read once, while it starts: $isReadWhileStarting', async (row) => {
  const cluster = new TestCluster()
  const connection = { type: row.connection } as ConnectionOptions
  const client = new AgentSandboxClient({ client: cluster.client(), namespace: 'default', connection })
  const read = `GET ${sandboxes}/${row.sandbox}`
  const reads = () => cluster.requests.filter((request) => request === read).length
  const creating = client.sandboxes.create({ pool: 'p', name: 'mine' })
  creating.catch(() => {})
  const isWatched = () => cluster.requests.includes(`GET ${claims}?watch`)
  await expect.poll(isWatched).toBe(true)
  const claim = cluster.objects.get(`${claims}/mine`)!
  const tell = (status: 'True' | 'False') =>
    cluster.put(`${claims}/mine`, {
      ...claim,
      status: { sandbox: { name: row.sandbox, podIPs: ['10.0.0.1'] }, conditions: [ready(status)] },
    } as typeof claim)
  const made: Sandbox = { metadata: { name: row.sandbox, namespace: 'default' }, spec }
  cluster.put(`${sandboxes}/${row.sandbox}`, made)

  tell('False')
  if (row.isReadWhileStarting) await expect.poll(reads).toBe(1)
  // The watch has told of it by then.
  for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  const readsBefore = reads()
  tell('True')
  const handle = await creating

  expect(handle.name).toBe(row.sandbox)
  expect([readsBefore, reads()]).toEqual([row.isReadWhileStarting ? 1 : 0, 1])
  handle.detach()
  await client.close()
})
