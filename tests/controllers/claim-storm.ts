import { type ApiServer, createApiServer, memoryStorage } from '@corral/apiserver'
import { defaultManagerOptions, type Manager, startManager } from '@corral/controllers'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import type { ApiHandler } from '@corral/ports'
import {
  controllerOf,
  embeddedCrds,
  type KubeObject,
  Pods,
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { expect } from 'vitest'
import { type InstantNode, startInstantNode } from '../../packages/testing/src/instant-node.js'
import { claim, createPool, fullPool, isReady, namespace } from './cluster.js'

/** Full size where it is asked for; small enough for every run otherwise. */
export const sized = (full: number, reduced: number): number =>
  process.env.CORRAL_TEST_SIZE === 'full' ? full : reduced

/** An API server, a node, a full pool, and an eye on every binding that is ever visible. */
export interface Storm {
  readonly server: ApiServer
  readonly client: KubeClient
  /** A manager that reaches the server only through `handler`. */
  startManager(handler: ApiHandler): Manager
  createClaims(names: readonly string[]): Promise<void>
  /** Every claim Ready with a Sandbox of its own, the pool at its size, nothing left over; no binding ever changed. */
  expectCalm(claims: number, poolSize: number): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export async function startStorm(): Promise<Storm> {
  const server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds() })
  await server.ready
  const client = inProcessKubeClient(server)
  const node: InstantNode = startInstantNode({ client })
  await node.ready
  const managers: Manager[] = []
  const stop = new AbortController()
  const rebindings: string[] = []
  const watching = Promise.all([
    follow(client, SandboxClaims, (object) => object.status?.sandbox?.name, stop.signal, rebindings),
    follow(client, Sandboxes, claimOwning, stop.signal, rebindings),
  ])
  const sandboxes = async (): Promise<Stored<Sandbox>[]> => (await client.list(Sandboxes, { namespace })).items
  const podCount = async (): Promise<number> => (await client.list(Pods, { namespace })).items.length
  const patience = { timeout: sized(1_200_000, 240_000), interval: 200 }

  return {
    server,
    client,
    startManager(handler) {
      const manager = startManager({ client: inProcessKubeClient(handler), options: defaultManagerOptions() })
      managers.push(manager)
      return manager
    },
    async createClaims(names) {
      await Promise.all(names.map((name) => client.create(SandboxClaims, claim(name))))
    },
    async expectCalm(claims, poolSize) {
      const all = async (): Promise<Stored<SandboxClaim>[]> => (await client.list(SandboxClaims, { namespace })).items
      await expect.poll(async () => (await all()).filter(isReady).length, patience).toBe(claims)
      // Surplus shows by name and owner, which tells a leak from a pool that is too large.
      await expect.poll(async () => surplus(await all(), await sandboxes(), poolSize), patience).toEqual([])
      await expect.poll(async () => (await sandboxes()).length, patience).toBe(claims + poolSize)
      await expect.poll(podCount, patience).toBe(claims + poolSize)
      await fullPool(client, poolSize)
      expect(new Set((await all()).map(({ status }) => status?.sandbox?.name)).size).toBe(claims)
      expect(rebindings).toEqual([])
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(managers.map((manager) => manager.stop()))
      stop.abort()
      await watching
      await node.stop()
      await client.close()
      await server.close()
    },
  }
}

export async function fillPool(client: KubeClient, replicas: number): Promise<void> {
  await createPool(client, replicas)
  await fullPool(client, replicas)
}

const claimOwning = (object: Stored<KubeObject>): string | undefined => {
  const owner = controllerOf(object)
  return owner?.kind === SandboxClaims.kind ? owner.uid : undefined
}

/** Sandboxes that are neither the one of their claim nor one of as many members as the pool should have. */
function surplus(claims: readonly Stored<SandboxClaim>[], all: readonly Stored<Sandbox>[], poolSize: number): string[] {
  const boundTo = new Map(claims.map(({ metadata, status }) => [metadata.uid, status?.sandbox?.name]))
  const isMember = (sandbox: Stored<Sandbox>): boolean => controllerOf(sandbox)?.kind === SandboxWarmPools.kind
  const strays = all.filter((sandbox) => {
    const owner = controllerOf(sandbox)
    return !isMember(sandbox) && boundTo.get(owner?.uid ?? '') !== sandbox.metadata.name
  })
  return [...strays, ...all.filter(isMember).slice(poolSize)].map((sandbox) => {
    const owner = controllerOf(sandbox)
    const bound = claims.find(({ metadata }) => metadata.uid === owner?.uid)?.status?.sandbox?.name
    return `${sandbox.metadata.name} of ${owner?.kind} ${owner?.name}${bound ? `, which has ${bound}` : ''}`
  })
}

/** Notes every object whose binding changed after it had one. */
async function follow<T extends KubeObject>(
  client: KubeClient,
  kind: Parameters<typeof client.watch<T>>[0],
  bindingOf: (object: Stored<T>) => string | undefined,
  signal: AbortSignal,
  changes: string[],
): Promise<void> {
  const bindings = new Map<string, string>()
  try {
    for await (const { object } of client.watch(kind, { namespace, signal })) {
      const binding = bindingOf(object)
      const before = bindings.get(object.metadata.uid)
      if (before !== undefined && binding !== before)
        changes.push(`${kind.kind} ${object.metadata.name}: ${before} became ${binding ?? 'nothing'}`)
      if (binding !== undefined) bindings.set(object.metadata.uid, binding)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
