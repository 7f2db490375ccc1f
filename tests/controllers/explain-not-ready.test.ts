import { Events, Pods, Sandboxes } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { condition, readySandbox, sandbox, startTestCluster, type TestCluster, waitFor } from './cluster.js'
import { ref } from './objects.js'

/** On a node already, so that no scheduler has its say. */
const placed = { spec: { nodeName: 'somewhere', containers: [{ name: 'main', image: 'busybox:1' }] } }

async function started(isOn = true): Promise<TestCluster> {
  const cluster = await startTestCluster({ node: false })
  await cluster.startManager((options) => {
    options.sandbox.explainNotReady = isOn
  })
  return cluster
}

async function warn(cluster: TestCluster, reason: string, message: string, minutesAgo = 0): Promise<void> {
  const pod = await waitFor(cluster.client, Pods, 'box', () => true)
  const { name, namespace = '', uid } = pod.metadata
  const at = `${new Date(Date.now() - minutesAgo * 60_000).toISOString().slice(0, 19)}Z`
  await cluster.client.create(Events, {
    metadata: { name: `${name}.${reason.toLowerCase()}`, namespace },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', name, namespace, uid },
    type: 'Warning',
    reason,
    message,
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
    source: { component: 'kubelet' },
  })
}

const saysSoon = (cluster: TestCluster, text: string): Promise<unknown> =>
  waitFor(cluster.client, Sandboxes, 'box', (object) => condition(object, 'Ready')?.message.includes(text) ?? false)

describe('a Sandbox that is not Ready explains itself', () => {
  it('with what the cluster complains about its Pod', async () => {
    await using cluster = await started()
    await cluster.client.create(Sandboxes, sandbox('box', { podTemplate: placed }))
    await warn(cluster, 'FailedMount', 'MountVolume.SetUp failed for volume "data": not found')
    await saysSoon(cluster, 'Pod exists with phase: Pending; FailedMount: MountVolume.SetUp failed for volume "data"')
  })

  it('with the latest complaint, and none about scheduling once it has a node', async () => {
    await using cluster = await started()
    await cluster.client.create(Sandboxes, sandbox('box', { podTemplate: placed }))
    await warn(cluster, 'FailedCreatePodSandBox', 'no network yet', 5)
    await saysSoon(cluster, 'FailedCreatePodSandBox: no network yet')
    await warn(cluster, 'FailedScheduling', '0/3 nodes are available')
    await warn(cluster, 'Unhealthy', 'Readiness probe failed: no', 1)
    await saysSoon(cluster, 'Unhealthy: Readiness probe failed: no')
    const { message } = condition(await cluster.client.get(Sandboxes, ref('box')), 'Ready') ?? {}
    expect(message).not.toContain('nodes are available')
  })

  it('with the quota that its Pod would exceed', async () => {
    await using cluster = await started()
    cluster.fault = ({ method, path }) =>
      method === 'POST' && path.endsWith('/pods')
        ? new Error('pods "box" is forbidden: exceeded quota: compute')
        : undefined
    await cluster.client.create(Sandboxes, sandbox('box'))
    await saysSoon(cluster, 'pods "box" is forbidden: exceeded quota: compute')
  })

  it('in no other words than upstream unless asked', async () => {
    await using cluster = await started(false)
    await cluster.client.create(Sandboxes, sandbox('box', { podTemplate: placed }))
    await warn(cluster, 'FailedMount', 'no such volume')
    const running = { phase: 'Running', podIPs: [{ ip: '10.0.0.1' }], conditions: [{ type: 'Ready', status: 'False' }] }
    await cluster.client.patch(
      Pods,
      ref('box'),
      { type: 'merge', body: { status: running } },
      { subresource: 'status' },
    )
    await saysSoon(cluster, 'Pod is Running but not Ready')
    expect(condition(await cluster.client.get(Sandboxes, ref('box')), 'Ready')?.message).toBe(
      'Pod is Running but not Ready',
    )
  })

  it('no more once it is Ready', async () => {
    await using cluster = await started()
    await cluster.client.create(Sandboxes, sandbox('box', { podTemplate: placed }))
    await warn(cluster, 'FailedMount', 'no such volume')
    await saysSoon(cluster, 'no such volume')
    const running = { phase: 'Running', podIPs: [{ ip: '10.0.0.1' }], conditions: [{ type: 'Ready', status: 'True' }] }
    await cluster.client.patch(
      Pods,
      ref('box'),
      { type: 'merge', body: { status: running } },
      { subresource: 'status' },
    )
    expect(condition(await readySandbox(cluster.client, 'box'), 'Ready')?.message).toBe('Pod is Ready')
  })

  it('without reading events, where the server forbids it', async () => {
    await using cluster = await startTestCluster()
    cluster.fault = ({ path }) => (path.endsWith('/events') ? new Error('forbidden') : undefined)
    await cluster.startManager((options) => {
      options.sandbox.explainNotReady = true
    })
    await cluster.client.create(Sandboxes, sandbox('box'))
    await readySandbox(cluster.client, 'box')
  })
})
