import type { KubeClient, PatchBody } from '@corral/kube'
import {
  convertTo,
  defineKind,
  isConvertible,
  type KubeObject,
  type ResourceKind,
  type SandboxClaimV1alpha1,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { timeSignal } from './time-limit.js'

/** The question comes before the first call of a client, which has its own limits; asked again, it has less time. */
const askWithinMs = 5_000
const askAgainWithinMs = 1_000
const groups = ['agents.x-k8s.io', 'extensions.agents.x-k8s.io'] as const

/**
 * Which version of Agent Sandbox a cluster serves, asked once. A cluster that cannot be asked is taken for a newer one in
 * that call, whose own answer tells what is wrong, and asked again in the next.
 */
export class VersionQuestion {
  readonly #kube: KubeClient
  #answer: Promise<KubeClient | undefined> | undefined
  #hasFailed = false

  constructor(kube: KubeClient) {
    this.#kube = kube
  }

  async client(withinMs: number = askWithinMs): Promise<KubeClient> {
    this.#answer ??= servedVersion(this.#kube, this.#hasFailed ? Math.min(withinMs, askAgainWithinMs) : withinMs)
    const answered = await this.#answer
    if (answered) return answered
    this.#hasFailed = true
    this.#answer = undefined
    return this.#kube
  }
}

/**
 * The client itself, or where the cluster serves Agent Sandbox as v1alpha1 only one that speaks that version and shows
 * v1beta1: controllers before 1.0. Undefined where the cluster cannot be asked.
 */
async function servedVersion(kube: KubeClient, withinMs: number): Promise<KubeClient | undefined> {
  const signal = timeSignal(withinMs)
  const serves = async (version: string): Promise<boolean> => {
    const answers = await Promise.all(groups.map((group) => kube.raw(`/apis/${group}/${version}`, { signal })))
    return answers.every(({ status }) => status === 200)
  }
  try {
    return (await serves('v1beta1')) || !(await serves('v1alpha1')) ? kube : alphaClient(kube)
  } catch {
    return undefined
  }
}

/** v1beta1 objects in and out of a server that keeps v1alpha1. */
export function alphaClient(kube: KubeClient): KubeClient {
  const overrides: Partial<KubeClient> = {
    get: async (kind, ref, options) => up(await kube.get(older(kind), ref, options), kind),
    find: async (kind, ref, options) => {
      const found = await kube.find(older(kind), ref, options)
      return found && up(found, kind)
    },
    list: async (kind, options) => {
      const list = await kube.list(older(kind), options)
      return { ...list, items: list.items.map((item) => up(item, kind)) }
    },
    async *items(kind, options) {
      for await (const item of kube.items(older(kind), options)) yield up(item, kind)
    },
    create: async (kind, object, options) =>
      up(await kube.create(older(kind), await withTemplate(kube, down(object, kind)), options), kind),
    update: async (kind, object, options) => up(await kube.update(older(kind), down(object, kind), options), kind),
    patch: async (kind, ref, patch, options) =>
      up(await kube.patch(older(kind), ref, olderPatch(patch), options), kind),
    delete: (kind, ref, options) => kube.delete(older(kind), ref, options),
    scale: (kind, ref, replicas, options) => kube.scale(older(kind), ref, replicas, options),
    observe: (kind, options = {}) =>
      kube.observe(older(kind), {
        ...options,
        transform: (object) => (options.transform ?? ((same) => same))(up(object, kind)),
      }),
    async *watch(kind, options) {
      for await (const event of kube.watch(older(kind), options)) yield { ...event, object: up(event.object, kind) }
    },
  }
  return new Proxy(kube, {
    get(target, key) {
      const override = overrides[key as keyof KubeClient]
      if (override) return override
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

const isOurs = (apiVersion: string): boolean => groups.some((group) => apiVersion === `${group}/v1beta1`)

function older<T extends KubeObject>(kind: ResourceKind<T>): ResourceKind<T> {
  if (!isOurs(kind.apiVersion)) return kind
  return defineKind<T>(kind.apiVersion.replace(/v1beta1$/, 'v1alpha1'), kind.kind, kind.plural)
}

function up<T extends KubeObject>(object: Stored<T>, { apiVersion, kind }: ResourceKind<T>): Stored<T> {
  if (!isOurs(apiVersion)) return object
  // Items of a list do not say what they are.
  const named = { ...object, apiVersion: apiVersion.replace(/v1beta1$/, 'v1alpha1'), kind }
  return isConvertible(named) ? convertTo<Stored<T>>(named, apiVersion) : object
}

function down<T extends KubeObject>(object: T, { apiVersion, kind }: ResourceKind<T>): T {
  if (!isOurs(apiVersion)) return object
  return convertTo<T>({ ...object, apiVersion, kind }, apiVersion.replace(/v1beta1$/, 'v1alpha1'))
}

/** Merge patches of ours touch one field that was another one then. */
function olderPatch(patch: PatchBody): PatchBody {
  if (patch.type !== 'merge') return patch
  const { spec, ...rest } = patch.body as { spec?: { operatingMode?: string } }
  if (spec?.operatingMode === undefined) return patch
  const { operatingMode, ...others } = spec
  return { type: 'merge', body: { ...rest, spec: { ...others, replicas: operatingMode === 'Suspended' ? 0 : 1 } } }
}

/** A claim named its template then; it is its pool's. */
async function withTemplate<T extends KubeObject>(kube: KubeClient, object: T): Promise<T> {
  const claim = object as KubeObject as SandboxClaimV1alpha1
  if (object.kind !== 'SandboxClaim' || !claim.spec.warmpool) return object
  const { namespace } = object.metadata ?? {}
  const ref = { name: claim.spec.warmpool, ...(namespace ? { namespace } : {}) }
  const pool = await kube.find(older(SandboxWarmPools), ref)
  if (!pool) return object
  return { ...object, spec: { ...claim.spec, sandboxTemplateRef: { name: pool.spec.sandboxTemplateRef.name } } }
}
