import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { daemonPort, daemonRoutes } from '@corral/protocol'
import type { KubeObject, Sandbox } from '@corral/resources'
import { beforeEach, describe, expect, it } from 'vitest'
import { AgentSandboxClient } from './agent-sandbox-client.js'
import { TestCluster } from './test-cluster.test-suite.js'

const podTemplate = { spec: { containers: [{ name: 'sandbox', image: 'debian' }] } }
const podPath = '/api/v1/namespaces/default/pods/one'
let cluster: TestCluster
let client: AgentSandboxClient

beforeEach(async () => {
  cluster = new TestCluster()
  client = new AgentSandboxClient({ client: cluster.client(), namespace: 'default' })
  await client.sandboxes.objects.create({ metadata: { name: 'one' }, spec: { podTemplate } } as Sandbox)
  startPod()
})

function startPod(): void {
  cluster.put(podPath, { metadata: { name: 'one', namespace: 'default' }, status: { phase: 'Running' } } as KubeObject)
}

const setMode = (operatingMode: 'Running' | 'Suspended') =>
  client.sandboxes.objects.patch('one', { spec: { operatingMode } })

describe('a sandbox that was suspended by somebody else', () => {
  it('says so at the first call, is not taken for one without a daemon, and works again after it was resumed', async () => {
    const sandbox = await client.sandboxes.get('one')
    await setMode('Suspended')
    cluster.objects.delete(podPath)
    for (const call of [() => sandbox.exec(['true']), () => sandbox.metrics(), () => sandbox.processes.list()])
      await expect(call()).rejects.toMatchObject({ code: 'SandboxNotReady', message: 'sandbox "one" is suspended' })
    await setMode('Running')
    startPod()
    expect(await sandbox.exec(['echo', 'back'])).toMatchObject({ exitCode: 0, stdout: 'back\n' })
  })

  it('and resumed before the first call of a handle on it, works', async () => {
    await setMode('Suspended')
    const sandbox = await client.sandboxes.get('one')
    await setMode('Running')
    expect(await sandbox.exec(['echo', 'back'])).toMatchObject({ stdout: 'back\n' })
  })

  it('and deleted since is SandboxDeleted', async () => {
    const sandbox = await client.sandboxes.get('one')
    await client.sandboxes.delete('one')
    cluster.objects.delete(podPath)
    await expect(sandbox.exec(['true'])).rejects.toMatchObject({ code: 'SandboxDeleted' })
  })
})

describe('a pod that is being replaced', () => {
  it.each<{ when: string; change: () => void }>([
    { when: 'is gone', change: () => cluster.objects.delete(podPath) },
    {
      when: 'is ending',
      change: () => cluster.change(podPath, { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
    },
  ])('is no failure of the sandbox for a command that begins while the old one $when', async ({ change }) => {
    const sandbox = await client.sandboxes.get('one')
    change()
    await expect(sandbox.exec(['true'])).rejects.toMatchObject({
      code: 'SandboxNotReady',
      retryable: true,
      message: 'the pod of sandbox "one" in "default" is being replaced',
    })
    cluster.objects.delete(podPath)
    startPod()
    expect(await sandbox.exec(['echo', 'back'])).toMatchObject({ exitCode: 0, stdout: 'back\n' })
  })

  it('is one where it has ended for good', async () => {
    cluster.change(podPath, { status: { phase: 'Failed' } })
    const sandbox = await client.sandboxes.get('one')
    await expect(sandbox.exec(['true'])).rejects.toMatchObject({ code: 'SandboxFailed', retryable: false })
  })
})

describe('a pod that was Ready before its daemon listened', () => {
  it('takes a command through the kubelet meanwhile, and what needs a daemon once there is one', async () => {
    const sandbox = await client.sandboxes.get('one')
    expect(await sandbox.exec(['echo', 'early'])).toMatchObject({ stdout: 'early\n' })
    expect(await sandbox.runtime()).toBe('pod-exec')
    await expect(sandbox.processes.list()).rejects.toMatchObject({ code: 'Unsupported' })

    const daemon = createServer((request, response) => {
      if (request.url === daemonRoutes.health) response.end('ok')
      else if (request.url === daemonRoutes.processes) response.end('{"processes":[]}')
      else response.writeHead(404).end()
    })
    daemon.on('connect', (_, socket) => void socket.end('HTTP/1.1 405 Method Not Allowed\r\n\r\n'))
    await new Promise<void>((resolve) => daemon.listen(0, '127.0.0.1', resolve))
    cluster.ports.set(daemonPort, (daemon.address() as AddressInfo).port)
    expect(await sandbox.processes.list()).toEqual([])
    expect(await sandbox.runtime()).toBe('corral')
    sandbox.detach()
    await new Promise((resolve) => daemon.close(resolve))
  })
})

it('a local port that another program has is a Conflict that says what to do', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const { port } = other.address() as AddressInfo
  const sandbox = await client.sandboxes.get('one')
  await expect(sandbox.ports.forward(80, { localPort: port })).rejects.toMatchObject({
    code: 'Conflict',
    message: `cannot listen on 127.0.0.1:${port}`,
    hint: expect.stringContaining('another local port'),
  })
  await new Promise((resolve) => other.close(resolve))
})

describe('after its end', () => {
  it('a sandbox that this program deleted says that it was deleted, not that the call was aborted', async () => {
    cluster.react = (path) => {
      const conditions = [{ type: 'Ready', status: 'True', reason: 'DependenciesReady', observedGeneration: 1 }]
      if (path.endsWith('/two')) cluster.change(path, { status: { conditions } })
    }
    const sandbox = await client.sandboxes.create({ name: 'two', podTemplate })
    await sandbox.delete()
    await expect(sandbox.exec(['true'])).rejects.toMatchObject({ code: 'SandboxDeleted' })
  })

  it('a client that was closed says so at once, and not that trying again may help', async () => {
    const closed = new AgentSandboxClient({ kubeconfigPath: '/nowhere/config', namespace: 'default' })
    await closed.close()
    await expect(closed.sandboxes.get('one')).rejects.toMatchObject({
      code: 'Aborted',
      message: 'this client was closed',
      retryable: false,
    })
  })
})
