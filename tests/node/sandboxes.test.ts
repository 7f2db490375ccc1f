import { defaultManagerOptions, type Manager, startManager } from '@corral/controllers'
import { bubblewrapIsolation } from '@corral/node'
import {
  findCondition,
  isConditionTrue,
  Pods,
  SandboxClaims,
  Sandboxes,
  SandboxTemplates,
  SandboxWarmPools,
} from '@corral/resources'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type NodeUnderTest, nodeUnderTest } from './node-under-test.js'

const forever = 'trap "exit 0" TERM; while :; do sleep 0.1; done'
const at = (name: string) => ({ namespace: 'default', name })
const waiting = { timeout: 240_000, interval: 20 }

describe('sandboxes on a real node', () => {
  let node: NodeUnderTest
  let manager: Manager
  beforeAll(async () => {
    node = await nodeUnderTest((dataDir) => bubblewrapIsolation({ dataDir }))
    manager = startManager({ client: node.client, options: defaultManagerOptions() })
    await manager.ready
  })
  afterAll(async () => {
    await manager?.stop()
    await node?.[Symbol.asyncDispose]()
  })

  const readySandbox = (name: string) =>
    vi.waitFor(async () => {
      const sandbox = await node.client.get(Sandboxes, at(name))
      expect(isConditionTrue(sandbox.status?.conditions ?? [], 'Ready')).toBe(true)
      return sandbox
    }, waiting)

  it('keep their volume and its owner through suspend and resume', async () => {
    await node.client.create(Sandboxes, {
      metadata: at('durable'),
      spec: {
        podTemplate: {
          spec: {
            terminationGracePeriodSeconds: 2,
            containers: [
              {
                name: 'main',
                image: 'x',
                command: ['sh', '-c', forever],
                volumeMounts: [{ name: 'work', mountPath: '/work' }],
              },
            ],
          },
        },
        volumeClaimTemplates: [
          {
            metadata: { name: 'work' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          },
        ],
      },
    })
    await readySandbox('durable')
    expect((await node.run('durable', ['sh', '-c', 'umask 077; echo kept > /work/file'])).exitCode).toBe(0)

    const mode = (operatingMode: string) => ({ type: 'merge' as const, body: { spec: { operatingMode } } })
    await node.client.patch(Sandboxes, at('durable'), mode('Suspended'))
    await node.untilGone('durable')
    await node.client.patch(Sandboxes, at('durable'), mode('Running'))
    await readySandbox('durable')
    expect(await node.run('durable', ['cat', '/work/file'])).toEqual({ exitCode: 0, stdout: 'kept\n', stderr: '' })
  })

  it('S0-D6 S0-M7: a claim is ready with its pod, and finished when the pod ends with 0', async () => {
    await node.client.create(SandboxTemplates, {
      metadata: at('runner'),
      spec: {
        networkPolicyManagement: 'Unmanaged',
        podTemplate: {
          spec: {
            restartPolicy: 'Never',
            securityContext: { runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000, runAsNonRoot: true },
            containers: [
              {
                name: 'runner',
                image: 'x',
                command: [
                  'node',
                  '-e',
                  `require('http').createServer((q, r) => { r.end('ok'); if (q.url === '/end') setTimeout(() => process.exit(0), 20) }).listen(8888)`,
                ],
                ports: [{ containerPort: 8888 }],
                readinessProbe: { httpGet: { path: '/healthz', port: 8888 }, periodSeconds: 5 },
                resources: { requests: { memory: '64Mi', cpu: '50m' }, limits: { memory: '128Mi', cpu: '200m' } },
              },
            ],
          },
        },
      },
    })
    await node.client.create(SandboxWarmPools, {
      metadata: at('runners'),
      spec: { replicas: 0, sandboxTemplateRef: { name: 'runner' } },
    })
    await node.client.create(SandboxClaims, { metadata: at('task'), spec: { warmPoolRef: { name: 'runners' } } })
    const claim = await vi.waitFor(async () => {
      const found = await node.client.get(SandboxClaims, at('task'))
      expect(isConditionTrue(found.status?.conditions ?? [], 'Ready')).toBe(true)
      return found
    }, waiting)
    const sandbox = claim.status?.sandbox?.name ?? ''
    const [pod] = (await node.client.list(Pods, { namespace: 'default' })).items.filter(
      (it) => it.metadata.ownerReferences?.[0]?.name === sandbox,
    )
    const connection = await node.client.portForward(at(pod!.metadata.name), 8888)
    await connection.write(Buffer.from('GET /end HTTP/1.0\r\n\r\n'))
    await node.until(pod!.metadata.name, (it) => it.status?.phase === 'Succeeded')
    await vi.waitFor(async () => {
      const { status } = await node.client.get(Sandboxes, at(sandbox))
      expect(findCondition(status?.conditions ?? [], 'Finished')).toMatchObject({
        status: 'True',
        reason: 'PodSucceeded',
      })
    }, waiting)
  })
})
