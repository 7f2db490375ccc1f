import { createServer } from 'node:http'
import { type AddressInfo, createServer as createSocketServer } from 'node:net'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import type { ApiHandler, ApiResponse } from '@corral/ports'
import { describe, expect, it } from 'vitest'
import { AgentSandboxClient } from './agent-sandbox-client.js'
import type { ConnectionOptions } from './connection/connection-options.js'
import { TestCluster } from './test-cluster.test-suite.js'

const pools = '/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/agents/sandboxwarmpools'

/** A cluster as a ServiceAccount with a Role in the namespace `agents` sees it, and nothing else. */
function roleIn(cluster: TestCluster, options: { rights: readonly string[] }): KubeClient {
  const own: ApiHandler = {
    connect: (request) => cluster.connect(request),
    async handle(request) {
      const { method, path, body } = request
      if (path.endsWith('/selfsubjectaccessreviews')) {
        const { resourceAttributes: asked } = (body as { spec: { resourceAttributes: Record<string, string> } }).spec
        const what = `${asked.verb} ${asked.resource}${asked.subresource ? `/${asked.subresource}` : ''}`
        return answer(201, { status: { allowed: options.rights.includes(what) } })
      }
      const isOutside = method === 'GET' && /^\/(api\/v1|apis\/[^/]+\/[^/]+)\//.test(path)
      if (isOutside && !path.includes('/namespaces/agents/')) {
        const message = `${path} is forbidden`
        return answer(403, { kind: 'Status', status: 'Failure', reason: 'Forbidden', code: 403, message })
      }
      return cluster.handle(request)
    },
  }
  return inProcessKubeClient(own)
}

function answer(status: number, value: object): ApiResponse {
  return { status, headers: {}, body: { type: 'object', value, json: () => JSON.stringify(value) } }
}

const rights = ['create sandboxclaims', 'watch sandboxclaims', 'delete sandboxclaims', 'get sandboxes']

function clientWith(options: { connection: ConnectionOptions['type']; rights?: string[]; hasReported?: boolean }) {
  const cluster = new TestCluster()
  const pool = { metadata: { name: 'default' }, spec: { replicas: 1, sandboxTemplateRef: { name: 'default' } } }
  const status = { observedGeneration: 1, replicas: 1, readyReplicas: 1 }
  cluster.put(`${pools}/default`, options.hasReported === false ? pool : { ...pool, ...{ status } })
  return new AgentSandboxClient({
    client: roleIn(cluster, { rights: options.rights ?? rights }),
    namespace: 'agents',
    connection: { type: options.connection } as ConnectionOptions,
  })
}
const problemsOf = ({ problems }: { problems: readonly { check: string }[] }): string[] =>
  [...new Set(problems.map(({ check }) => check))].sort()

describe('the health of a cluster, for who has rights in one namespace alone', () => {
  it('is good where everything is used by address: what may not be looked at is told, and is no fault', async () => {
    const health = await clientWith({ connection: 'in-cluster-pod-ip' }).healthCheck()
    expect(health).toMatchObject({ healthy: true, namespaceExists: true, controllerInstalled: true })
    expect(health.permissions).toEqual(Object.fromEntries(rights.map((right) => [right, true])))
    expect(problemsOf(health)).toEqual(['namespaceExists', 'networkPolicyEnforced', 'runtimeClasses'])
  })

  it.each<{ when: string; options: Parameters<typeof clientWith>[0]; finds: object; tells: string }>([
    {
      when: 'lines go through the API server, and it may open none',
      options: { connection: 'port-forward' },
      finds: { permissions: { 'create pods/portforward': false, 'create pods/exec': false } },
      tells: 'permissions',
    },
    {
      when: 'no controller has reported on a pool there',
      options: { connection: 'in-cluster-pod-ip', hasReported: false },
      finds: { controllerInstalled: false },
      tells: 'controllerInstalled',
    },
    {
      when: 'it may make no claims there',
      options: { connection: 'in-cluster-pod-ip', rights: [] },
      finds: { healthy: false, namespaceExists: false },
      tells: 'namespaceExists',
    },
  ])('is not where $when', async ({ options, finds, tells }) => {
    const health = await clientWith(options).healthCheck()
    expect(health).toMatchObject(finds)
    expect(problemsOf(health)).toContain(tells)
  })
})

describe('an address that is no cluster', () => {
  const clientOf = (port: number) =>
    new AgentSandboxClient({
      kubeConfig: {
        server: new URL(`http://127.0.0.1:${port}`),
        namespace: 'agents',
        tls: { rejectUnauthorized: false },
        origin: 'a test',
        credentials: async () => ({}),
      },
    })

  it('but a web page is not healthy, and calls say what is wrong', async () => {
    const page = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<html></html>'))
    await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve))
    await using client = clientOf((page.address() as AddressInfo).port)
    const health = await client.healthCheck()
    expect(health).toMatchObject({ healthy: false, crdRegistered: false, namespaceExists: false })
    expect(health.problems.map(({ message }) => message).join()).toContain('is this an API server?')
    await expect(client.sandboxes.get('one')).rejects.toMatchObject({ name: 'SandboxError', code: 'ProtocolViolation' })
    page.closeAllConnections()
    page.close()
  })

  it('but a server that takes connections and says nothing is told within the time that was given', async () => {
    const silent = createSocketServer()
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const client = clientOf((silent.address() as AddressInfo).port)
    const beganMs = performance.now()
    const health = await client.healthCheck({ timeoutMs: 200 })
    // Half a minute is what a call without a limit of its own takes.
    expect(performance.now() - beganMs).toBeLessThan(25_000)
    expect(health.healthy).toBe(false)
    expect(health.problems[0]?.message).toBe('no answer within 0.2 s')
    await client.close()
    silent.close()
  })
})
