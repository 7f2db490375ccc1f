import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { KubeObject, Sandbox } from '@corral/resources'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AgentSandboxClient } from './agent-sandbox-client.js'
import type { SandboxHandle } from './sandbox-handle.js'
import { TestCluster } from './test-cluster.test-suite.js'

const podTemplate = { spec: { containers: [{ name: 'sandbox', image: 'debian' }] } }
const podPath = '/api/v1/namespaces/default/pods/one'
let cluster: TestCluster
let inside: Server
let sandbox: SandboxHandle

beforeEach(async () => {
  cluster = new TestCluster()
  const client = new AgentSandboxClient({ client: cluster.client(), namespace: 'default' })
  await client.sandboxes.objects.create({ metadata: { name: 'one' }, spec: { podTemplate } } as Sandbox)
  cluster.put(podPath, { metadata: { name: 'one', namespace: 'default' }, status: { phase: 'Running' } } as KubeObject)
  inside = createServer((request, response) => {
    if (request.url === '/garbage') request.socket.end('no HTTP at all\r\n\r\n')
    else if (request.url === '/whole') response.setHeader('x-of', 'inside').end('all of it')
    else response.writeHead(200, { 'content-length': '100' }).write('a part')
  })
  await new Promise<void>((resolve) => inside.listen(0, '127.0.0.1', resolve))
  cluster.ports.set(80, (inside.address() as AddressInfo).port)
  sandbox = await client.sandboxes.get('one')
})

afterEach(async () => {
  sandbox.detach()
  inside.closeAllConnections()
  await new Promise((resolve) => inside.close(resolve))
})

describe('the body of an answer of a port', () => {
  const begun = async (signal?: AbortSignal): Promise<Response> => {
    const answer = await sandbox.ports.fetch(80, '/', signal ? { signal } : {})
    const first = await answer.clone().body?.getReader().read()
    expect(Buffer.from(first?.value ?? []).toString()).toBe('a part')
    return answer
  }

  it('is what was sent', async () => {
    const answer = await sandbox.ports.fetch(80, '/whole')
    expect([answer.status, answer.headers.get('x-of'), await answer.text()]).toEqual([200, 'inside', 'all of it'])
  })

  it('that breaks off is ConnectionLost and names the port', async () => {
    const answer = await begun()
    inside.closeAllConnections()
    await expect(answer.text()).rejects.toMatchObject({
      name: 'SandboxError',
      code: 'ConnectionLost',
      message: 'the answer of port 80 broke off: aborted',
    })
  })

  it('that breaks off with the sandbox says that it was deleted', async () => {
    const answer = await begun()
    cluster.objects.delete('/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/one')
    inside.closeAllConnections()
    await expect(answer.text()).rejects.toMatchObject({ name: 'SandboxError', code: 'SandboxDeleted' })
  })

  it('that its caller gives up is Aborted', async () => {
    const stop = new AbortController()
    const answer = await begun(stop.signal)
    stop.abort()
    await expect(answer.text()).rejects.toMatchObject({ name: 'SandboxError', code: 'Aborted' })
  })

  it('that is not wanted ends the transfer, and the next request goes through', async () => {
    const answer = await sandbox.ports.fetch(80, '/')
    await answer.body?.cancel()
    expect((await sandbox.ports.fetch(80, '/whole')).status).toBe(200)
  })
})

it.each<{ what: string; path: string; init?: RequestInit; code: string }>([
  { what: 'an answer that is not HTTP', path: '/garbage', code: 'ProtocolViolation' },
  { what: 'a method that is none', path: '/', init: { method: 'a b' }, code: 'Invalid' },
])('$what is $code and no fault of the SDK to be reported', async ({ path, init, code }) => {
  await expect(sandbox.ports.fetch(80, path, init)).rejects.toMatchObject({ name: 'SandboxError', code })
})

it('the log of a container that the pod does not have is an error of the SDK', async () => {
  cluster.objects.delete(podPath)
  const read = async (): Promise<void> => {
    for await (const piece of sandbox.logs()) expect(piece).toBeUndefined()
  }
  await expect(read()).rejects.toMatchObject({ name: 'SandboxError', code: 'NotFound' })
})
