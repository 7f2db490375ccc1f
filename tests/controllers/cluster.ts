import { createApiServer, memoryStorage } from '@corral/apiserver'
import { defaultManagerOptions, type Manager, type ManagerOptions, startManager } from '@corral/controllers'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { type ApiHandler, type ApiRequest, type Logger, silentLogger } from '@corral/ports'
import {
  embeddedCrds,
  type KubeObject,
  type ResourceKind,
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type SandboxTemplate,
  SandboxTemplates,
  type SandboxWarmPool,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { type InstantNode, type InstantNodeOptions, startInstantNode } from '../../packages/testing/src/instant-node.js'

export interface WriteRecord {
  method: string
  path: string
  body: unknown
}

export interface TestCluster {
  [Symbol.asyncDispose](): Promise<void>
  /** The tests' own client; its requests are not recorded. */
  client: KubeClient
  /** A client like the manager's: recorded and subject to `fault`. */
  managerClient: KubeClient
  /** Writes of the manager, in order. */
  writes: WriteRecord[]
  node: InstantNode | undefined
  manager: Manager | undefined
  startManager(options?: (options: ManagerOptions) => void): Promise<Manager>
  stopManager(): Promise<void>
  /** Answers instead of the server, or lets the request through. */
  fault: ((request: ApiRequest) => Error | undefined) | undefined
}

/** An API server in this process with memory storage, an instant node, and managers that can be started and stopped. */
export async function startTestCluster(
  options: { node?: Omit<InstantNodeOptions, 'client'> | false; log?: Logger } = {},
): Promise<TestCluster> {
  const server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds() })
  await server.ready
  const client = inProcessKubeClient(server)
  const writes: WriteRecord[] = []
  const cluster: TestCluster = {
    client,
    managerClient: inProcessKubeClient(recording(server)),
    writes,
    node: options.node === false ? undefined : startInstantNode({ client, ...options.node }),
    manager: undefined,
    fault: undefined,
    async startManager(change) {
      const managerOptions = defaultManagerOptions()
      change?.(managerOptions)
      const log = options.log ?? silentLogger
      cluster.manager = startManager({ client: cluster.managerClient, options: managerOptions, log })
      await cluster.manager.ready
      return cluster.manager
    },
    async stopManager() {
      await cluster.manager?.stop()
      cluster.manager = undefined
    },
    async [Symbol.asyncDispose]() {
      await cluster.stopManager()
      await cluster.node?.stop()
      await cluster.managerClient.close()
      await client.close()
      await server.close()
    },
  }

  await cluster.node?.ready

  function recording(handler: ApiHandler): ApiHandler {
    return {
      connect: (request) => handler.connect(request),
      handle(request) {
        const { method, path, body } = request
        const fault = cluster.fault?.(request)
        if (method !== 'GET') writes.push({ method, path, body })
        return fault ? Promise.reject(fault) : handler.handle(request)
      },
    }
  }
  return cluster
}

export const namespace = 'default'

export function template(name = 'tmpl', change: Partial<SandboxTemplate['spec']> = {}): SandboxTemplate {
  return {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxTemplate',
    metadata: { name, namespace },
    spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'busybox:1' }] } }, ...change },
  }
}

export function pool(name = 'pool', replicas = 1, change: Partial<SandboxWarmPool['spec']> = {}): SandboxWarmPool {
  return {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxWarmPool',
    metadata: { name, namespace },
    spec: { replicas, sandboxTemplateRef: { name: 'tmpl' }, ...change },
  }
}

export function claim(name = 'claim', change: Partial<SandboxClaim['spec']> = {}): SandboxClaim {
  return {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxClaim',
    metadata: { name, namespace },
    spec: { warmPoolRef: { name: 'pool' }, ...change },
  }
}

export function sandbox(name = 'box', change: Partial<Sandbox['spec']> = {}): Sandbox {
  return {
    apiVersion: 'agents.x-k8s.io/v1beta1',
    kind: 'Sandbox',
    metadata: { name, namespace },
    spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'busybox:1' }] } }, ...change },
  }
}

export async function createPool(client: KubeClient, replicas = 1, name = 'pool'): Promise<void> {
  await client.create(SandboxTemplates, template())
  await client.create(SandboxWarmPools, pool(name, replicas))
}

/** Waits until the object satisfies `done`; fails with what it last looked like. */
export async function waitFor<T extends KubeObject>(
  client: KubeClient,
  kind: ResourceKind<T>,
  name: string,
  done: (object: Stored<T>) => boolean,
  timeoutMs = 240_000,
): Promise<Stored<T>> {
  const signal = AbortSignal.timeout(timeoutMs)
  let last: Stored<T> | undefined
  try {
    for await (const event of client.watch(kind, { namespace, fieldSelector: `metadata.name=${name}`, signal })) {
      if (event.type === 'DELETED') continue
      last = event.object
      if (done(event.object)) return event.object
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  throw new Error(`${kind.kind} ${name} did not get there: ${JSON.stringify(last, null, 1)}`)
}

export function condition(
  object: { status?: { conditions?: { type: string; status: string; reason: string; message: string }[] } },
  type: string,
): { status: string; reason: string; message: string } | undefined {
  return object.status?.conditions?.find((entry) => entry.type === type)
}

export const isReady = (object: Parameters<typeof condition>[0]): boolean =>
  condition(object, 'Ready')?.status === 'True'

export const readySandbox = (client: KubeClient, name: string): Promise<Stored<Sandbox>> =>
  waitFor(client, Sandboxes, name, isReady)

export const readyClaim = (client: KubeClient, name: string): Promise<Stored<SandboxClaim>> =>
  waitFor(client, SandboxClaims, name, isReady)

export const fullPool = (client: KubeClient, replicas: number, name = 'pool'): Promise<Stored<SandboxWarmPool>> =>
  waitFor(client, SandboxWarmPools, name, (object) => (object.status?.readyReplicas ?? 0) === replicas)
