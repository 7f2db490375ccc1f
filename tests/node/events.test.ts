import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApiServer, memoryStorage } from '@corral/apiserver'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { startNode } from '@corral/node'
import { silentLogger, systemClock } from '@corral/ports'
import { Events, Nodes } from '@corral/resources'
import { fakeIsolation } from '@corral/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { type NodeUnderTest, nodeUnderTest } from './node-under-test.js'

describe('events and registration', () => {
  let node: NodeUnderTest | undefined
  afterEach(async () => {
    await node?.[Symbol.asyncDispose]()
    node = undefined
  })

  it('count repeats of the same thing in one event', async () => {
    node = await nodeUnderTest(() => fakeIsolation())
    const { client } = node
    const never = { exec: { command: ['sh', '-c', 'echo no; exit 1'] }, periodSeconds: 1 }
    await node.create('unready', {
      containers: [{ name: 'main', image: 'x', command: ['sleep', '100'], readinessProbe: never }],
    })
    const unhealthy = async () => {
      const { items } = await client.list(Events, { namespace: 'default' })
      return items.filter((event) => event.reason === 'Unhealthy').map(({ count, message }) => ({ count, message }))
    }
    await expect.poll(unhealthy).toEqual([{ count: 2, message: 'Readiness probe failed: no' }])
  })

  it('a server that is not there yet is asked again', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'corral-node-'))
    const server = await createApiServer({ storage: memoryStorage() })
    const client = inProcessKubeClient(server)
    let refusals = 2
    const flaky: KubeClient = {
      ...client,
      create: (kind, object, options) => {
        if (kind.kind === 'Node' && refusals-- > 0) return Promise.reject(new Error('connection refused'))
        return client.create(kind, object, options)
      },
    }
    const base = { dataDir, nodeName: 'n', images: {}, services: [], clock: systemClock, log: silentLogger }
    const agent = await startNode({ ...base, client: flaky, isolation: fakeIsolation() })
    await agent.ready
    expect((await client.get(Nodes, { name: 'n' })).status?.conditions?.at(-1)?.status).toBe('True')
    await agent.stop({ endPods: true })
    expect((await client.get(Nodes, { name: 'n' })).status?.conditions?.at(-1)?.status).toBe('False')
    await client.close()
    await server.close()
    rmSync(dataDir, { recursive: true })
  })
})
