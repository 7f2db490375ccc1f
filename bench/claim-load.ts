import type { KubeClient } from '@corral/kube'
import {
  isConditionTrue,
  SandboxClaims,
  Sandboxes,
  type SandboxTemplate,
  SandboxTemplates,
  SandboxWarmPools,
} from '@corral/resources'
import { ClaimWatch } from './common/claim-watch.js'
import { until } from './common/until.js'

const namespace = 'default'
const poolName = 'pool'
const readyTimeoutMs = 180_000

/** Claims by the time from the create call to Ready. */
export interface ClaimFigures {
  latenciesMs: number[]
  /** From the first create to the last Ready. */
  elapsedMs: number
}

export const perSecond = ({ latenciesMs, elapsedMs }: ClaimFigures): number => (latenciesMs.length / elapsedMs) * 1000

const template: SandboxTemplate = {
  metadata: { name: 'plain', namespace },
  spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'busybox:1' }] } } },
}

/** Creates the pool from nothing; milliseconds until all of it is Ready. */
export async function fillPool(client: KubeClient, replicas: number): Promise<number> {
  await client.create(SandboxTemplates, template)
  const startedAt = performance.now()
  await client.create(SandboxWarmPools, {
    metadata: { name: poolName, namespace },
    spec: { replicas, sandboxTemplateRef: { name: 'plain' } },
  })
  await poolFull(client, replicas)
  return performance.now() - startedAt
}

/** Waits until the pool counts this many Ready members. */
async function poolFull(client: KubeClient, replicas: number): Promise<void> {
  const signal = AbortSignal.timeout(readyTimeoutMs)
  try {
    for await (const { type, object } of client.watch(SandboxWarmPools, { namespace, signal })) {
      if (type === 'DELETED' || object.metadata.name !== poolName) continue
      if ((object.status?.readyReplicas ?? 0) >= replicas) return
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  throw new Error(`the pool did not reach ${replicas}`)
}

/** Waits until the pool owns this many Ready members, whatever its status says yet. */
export async function membersReady(client: KubeClient, replicas: number): Promise<void> {
  const areReady = async (): Promise<boolean> => {
    const { items } = await client.list(Sandboxes, { namespace })
    const members = items.filter(({ metadata }) => metadata.ownerReferences?.some(({ name }) => name === poolName))
    return members.filter(({ status }) => isConditionTrue(status?.conditions, 'Ready')).length >= replicas
  }
  await until(`${replicas} members of the pool Ready`, areReady, readyTimeoutMs, 300)
}

/** Makes claims and tells when each is Ready. */
export class ClaimLoad {
  readonly #client: KubeClient
  readonly #watch: ClaimWatch

  constructor(client: KubeClient) {
    this.#client = client
    this.#watch = new ClaimWatch(client, namespace)
  }

  get synced(): Promise<void> {
    return this.#watch.synced
  }

  /** All at once. */
  async burst(prefix: string, count: number): Promise<ClaimFigures> {
    const startedAt = performance.now()
    const names = Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
    const latenciesMs = await Promise.all(names.map((name) => this.#claim(name)))
    return { latenciesMs, elapsedMs: performance.now() - startedAt }
  }

  /** On a fixed schedule, however long earlier ones take. */
  async offered(prefix: string, ratePerSecond: number, durationMs: number): Promise<ClaimFigures> {
    const total = Math.floor((durationMs / 1000) * ratePerSecond)
    const startedAt = performance.now()
    const pending: Promise<number>[] = []
    while (pending.length < total) {
      const due = Math.min(total, Math.floor(((performance.now() - startedAt) / 1000) * ratePerSecond) + 1)
      while (pending.length < due) pending.push(this.#claim(`${prefix}-${pending.length}`))
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    return { latenciesMs: await Promise.all(pending), elapsedMs: performance.now() - startedAt }
  }

  /** As many as it takes: each of `lanes` makes the next claim when its last one is Ready. */
  async sustained(prefix: string, lanes: number, durationMs: number, atMost: number): Promise<ClaimFigures> {
    const latenciesMs: number[] = []
    const startedAt = performance.now()
    let next = 0
    const lane = async (): Promise<void> => {
      while (performance.now() - startedAt < durationMs && next < atMost)
        latenciesMs.push(await this.#claim(`${prefix}-${next++}`))
    }
    await Promise.all(Array.from({ length: lanes }, lane))
    return { latenciesMs, elapsedMs: performance.now() - startedAt }
  }

  /** Waits until nothing has happened to any claim for two seconds: what a burst left to do is done. */
  quiet(): Promise<void> {
    return this.#watch.quiet(2_000)
  }

  /** The same for a server that has no other writers: until nothing at all has been written for two seconds. */
  async atRest(): Promise<void> {
    const version = async (): Promise<string | undefined> =>
      (await this.#client.list(SandboxTemplates, { namespace, limit: 1 })).metadata.resourceVersion
    for (let before = await version(), after = ''; before !== after; ) {
      after = before ?? ''
      await new Promise((resolve) => setTimeout(resolve, 2_000))
      before = await version()
    }
  }

  stop(): Promise<void> {
    return this.#watch.stop()
  }

  async #claim(name: string): Promise<number> {
    const startedAt = performance.now()
    const creating = this.#client.create(SandboxClaims, {
      metadata: { name, namespace },
      spec: { warmPoolRef: { name: poolName } },
    })
    const late = expiry(name)
    try {
      await Promise.all([creating, Promise.race([this.#watch.ready(name), late.promise])])
    } finally {
      late.clear()
    }
    return performance.now() - startedAt
  }
}

function expiry(name: string): { promise: Promise<never>; clear(): void } {
  let clear = (): void => {}
  const promise = new Promise<never>((_, reject) => {
    const error = new Error(`claim ${name} was not Ready after ${readyTimeoutMs} ms`)
    const timer = setTimeout(() => reject(error), readyTimeoutMs)
    clear = () => clearTimeout(timer)
  })
  return { promise, clear }
}
