import { deepStrictEqual, fail } from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { KubeClient } from '@corral/kube'
import {
  type Condition,
  controllerOf,
  type KubeObject,
  type Pod,
  type ResourceKind,
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type SandboxWarmPool,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { type Activity, observed } from './activity.js'
import { type Contents, normalize } from './normalize.js'
import type { PodFate, ScriptedNode } from './scripted-node.js'
import { hasOpenPools, hasOrphans } from './unfinished.js'

type AnyKind = ResourceKind<KubeObject>

/** A change that came between a look and the wait for the next is noticed after this. */
const pollMs = 300
/** Long enough for a busy machine: what takes it is a failure, not a delay. */
const patienceMs = 240_000
/** What a pool that looks unfinished gets on top; some are meant to stay so. */
const openPoolMs = 5_000
/** A garbage collector hears of new kinds every thirty seconds. */
const restMs = patienceMs + 30_000

export interface SceneOptions {
  client: KubeClient
  node: ScriptedNode
  activity: Activity
  namespace: string
  /** How long nothing may change before the scene counts as at rest. */
  quietMs: number
  signal: AbortSignal
}

/** A namespace of its own, the hands of a user and of a node in it, and what was seen. */
export class Scene {
  readonly client: KubeClient
  readonly namespace: string
  readonly signal: AbortSignal
  readonly observations: Record<string, unknown> = {}

  constructor(private readonly options: SceneOptions) {
    this.client = options.client
    this.namespace = options.namespace
    this.signal = options.signal
  }

  /** From now on the node treats this scene's Pods so. */
  fate(fate: PodFate | ((pod: Stored<Pod>) => PodFate)): void {
    const { node, namespace } = this.options
    node.script(namespace, typeof fate === 'function' ? fate : () => fate)
    node.refresh(namespace)
  }

  /**
   * Lets a Sandbox's Pod end after the Sandbox has told of its start. Where `Finished` stands among the conditions
   * depends on whether the start was seen, so a Pod that ends at once makes two runs differ by chance.
   */
  async ends(sandbox: string, fate: 'succeeded' | 'failed'): Promise<void> {
    await this.until(Sandboxes, sandbox, (object) => conditionOf(object, 'Ready') !== undefined)
    this.fate(fate)
  }

  async create<T extends KubeObject>(kind: ResourceKind<T>, object: T): Promise<Stored<T>> {
    const metadata = { ...object.metadata, namespace: this.namespace }
    return this.client.create(kind, { ...object, metadata }, { signal: this.signal })
  }

  get<T extends KubeObject>(kind: ResourceKind<T>, name: string): Promise<Stored<T>> {
    return this.client.get(kind, this.ref(name), { signal: this.signal })
  }

  find<T extends KubeObject>(kind: ResourceKind<T>, name: string): Promise<Stored<T> | undefined> {
    return this.client.find(kind, this.ref(name), { signal: this.signal })
  }

  async list<T extends KubeObject>(kind: ResourceKind<T>): Promise<Stored<T>[]> {
    return (await this.client.list(kind, { namespace: this.namespace, signal: this.signal })).items
  }

  merge<T extends KubeObject>(kind: ResourceKind<T>, name: string, body: object): Promise<Stored<T>> {
    return this.client.patch(kind, this.ref(name), { type: 'merge', body }, { signal: this.signal })
  }

  /** Writes a status the way a node, or another owner, would. */
  status<T extends KubeObject>(kind: ResourceKind<T>, name: string, status: object): Promise<Stored<T>> {
    const patch = { type: 'merge', body: { status } } as const
    return this.client.patch(kind, this.ref(name), patch, { subresource: 'status', signal: this.signal })
  }

  async delete<T extends KubeObject>(kind: ResourceKind<T>, name: string): Promise<void> {
    await this.client.delete(kind, this.ref(name), { signal: this.signal })
  }

  ref(name: string): { name: string; namespace: string } {
    return { name, namespace: this.namespace }
  }

  /** Waits until an object is as wanted; fails with what it last looked like. */
  async until<T extends KubeObject>(
    kind: ResourceKind<T>,
    name: string,
    done: (object: Stored<T>) => boolean,
    timeoutMs = patienceMs,
  ): Promise<Stored<T>> {
    let last: Stored<T> | undefined
    const deadlineMs = Date.now() + timeoutMs
    do {
      last = await this.find(kind, name)
      if (last && done(last)) return last
      await this.nextChange()
    } while (Date.now() < deadlineMs)
    const { metadata, status } = (last ?? {}) as Stored<KubeObject> & { status?: unknown }
    const seen = last && { labels: metadata.labels, annotations: metadata.annotations, status }
    fail(`${kind.kind} ${name} did not get there: ${JSON.stringify(seen)}`)
  }

  async gone(kind: AnyKind, name: string, timeoutMs = patienceMs): Promise<void> {
    const deadlineMs = Date.now() + timeoutMs
    while (await this.find(kind, name)) {
      if (Date.now() > deadlineMs) fail(`${kind.kind} ${name} is still there`)
      await this.nextChange()
    }
  }

  /** Waits until `read` answers what is expected. */
  async eventually<T>(read: () => Promise<T>, expected: T, timeoutMs = patienceMs): Promise<void> {
    const deadlineMs = Date.now() + timeoutMs
    for (;;) {
      const actual = await read()
      if (JSON.stringify(actual) === JSON.stringify(expected)) return
      if (Date.now() > deadlineMs) deepStrictEqual(actual, expected)
      await this.nextChange()
    }
  }

  readySandbox(name: string): Promise<Stored<Sandbox>> {
    return this.until(Sandboxes, name, (object) => conditionOf(object, 'Ready')?.status === 'True')
  }

  readyClaim(name: string): Promise<Stored<SandboxClaim>> {
    return this.until(SandboxClaims, name, (object) => conditionOf(object, 'Ready')?.status === 'True')
  }

  /** As many Ready members as asked for, and a status that says so: it may still speak of those that left. */
  async fullPool(name: string, replicas: number): Promise<Stored<SandboxWarmPool>> {
    await this.eventually(async () => {
      const isMember = (sandbox: Stored<Sandbox>): boolean =>
        controllerOf(sandbox)?.kind === SandboxWarmPools.kind && controllerOf(sandbox)?.name === name
      const members = (await this.list(Sandboxes)).filter(isMember)
      return members.filter((sandbox) => conditionOf(sandbox, 'Ready')?.status === 'True').length
    }, replicas)
    return this.until(SandboxWarmPools, name, ({ status }) => (status?.readyReplicas ?? 0) === replicas)
  }

  /** Waits for a reason of the Ready condition. */
  reason<T extends KubeObject>(kind: ResourceKind<T>, name: string, reason: string): Promise<Stored<T>> {
    return this.until(kind, name, (object) => conditionOf(object, 'Ready')?.reason === reason)
  }

  /** Compares what an object's Ready condition says: `False/PodFailed: Pod failed`. */
  async says(kind: AnyKind, name: string, expected: string, type = 'Ready'): Promise<void> {
    await this.eventually(async () => sentence(await this.find(kind, name), type), expected)
  }

  /** The refusal of a call that must not succeed. */
  async refused(call: Promise<unknown>): Promise<string> {
    try {
      await call
    } catch (error) {
      return (error as Error).message
    }
    return fail('the server accepted what it must refuse')
  }

  /** Waits for rest and keeps what is there to see, under a name. */
  async observe(name = 'end'): Promise<void> {
    this.observations[name] = normalize(await this.rest(), this.namespace)
  }

  /** Keeps any other fact for the comparison. */
  note(name: string, fact: unknown): void {
    this.observations[name] = fact
  }

  /** Everything in the namespace once nothing has changed for a while and nothing is left to be collected. */
  async rest(timeoutMs = restMs): Promise<Contents> {
    const { activity, quietMs } = this.options
    const startedMs = Date.now()
    for (;;) {
      const quietFromMs = Math.max(startedMs, activity.lastChangeMs(this.namespace))
      const leftMs = quietFromMs + quietMs - Date.now()
      if (leftMs <= 0) {
        const contents = await this.contents()
        const isOver = !hasOrphans(contents) && (!hasOpenPools(contents) || -leftMs > openPoolMs)
        if (isOver && activity.isLatest(this.namespace, Object.values(contents).flat())) return contents
      }
      if (Date.now() > startedMs + timeoutMs) fail('the namespace never came to rest')
      await pause(Math.max(leftMs, pollMs), undefined, { signal: this.signal })
    }
  }

  private nextChange(): Promise<void> {
    return this.options.activity.nextChange(this.namespace, pollMs, this.signal)
  }

  private async contents(): Promise<Contents> {
    const lists = Object.entries(observed).map(async ([name, kind]) => [name, await this.list(kind)] as const)
    return Object.fromEntries(await Promise.all(lists))
  }
}

export function conditionOf(object: KubeObject, type: string): Condition | undefined {
  const { status } = object as { status?: { conditions?: Condition[] } }
  return status?.conditions?.find((condition) => condition.type === type)
}

function sentence(object: KubeObject | undefined, type: string): string {
  const condition = object && conditionOf(object, type)
  return condition ? `${condition.status}/${condition.reason}: ${condition.message ?? ''}` : 'no such condition'
}
