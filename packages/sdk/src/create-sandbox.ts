import { randomBytes } from 'node:crypto'
import type { KubeClient } from '@corral/kube'
import { type BytesIn, egressRuleSchema } from '@corral/protocol'
import {
  isAlreadyExists,
  isNotFound,
  labelValueError,
  qualifiedNameError,
  type ResourceKind,
  type Sandbox,
  type SandboxClaim,
  type SandboxClaimSpec,
  SandboxClaims,
  Sandboxes,
  type SandboxPodTemplate,
  SandboxTemplates,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { waitForSandbox } from './claimed-sandbox.js'
import { outlasting } from './outlasting.js'
import { readyVerdict } from './ready-verdict.js'
import type { ClusterScope, InNamespace } from './resource-collection.js'
import { SandboxError, toSandboxError } from './sandbox-error.js'
import { type OwnedSandbox, type SandboxHandle, shutdownAfter, toSeconds } from './sandbox-handle.js'
import { timeLimit } from './time-limit.js'
import { type WaitOptions, waitFor } from './wait-for.js'

/** Where a sandbox comes from: a pool, a template (through its pool), or a pod template of its own. */
export type SandboxSource =
  | { readonly pool: string; readonly template?: never; readonly podTemplate?: never }
  | { readonly template: string; readonly pool?: never; readonly podTemplate?: never }
  | { readonly podTemplate: SandboxPodTemplate; readonly pool?: never; readonly template?: never }

export type CreateSandboxRequest = SandboxSource & {
  /** Made up where absent. */
  readonly name?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly podLabels?: Readonly<Record<string, string>>
  readonly podAnnotations?: Readonly<Record<string, string>>
  readonly volumeClaimTemplates?: SandboxClaimSpec['volumeClaimTemplates']
  /** When the cluster ends it by itself, whatever becomes of us. */
  readonly shutdownTime?: Date
  /** The same as a time from now. */
  readonly ttlMs?: number
  readonly shutdownPolicy?: 'Delete' | 'DeleteForeground' | 'Retain'
  readonly ttlSecondsAfterFinished?: number
  /** Variables of every command. */
  readonly env?: Readonly<Record<string, string>>
  /** Written before `create` resolves: content by absolute path. */
  readonly files?: Readonly<Record<string, BytesIn>>
  /** Cloned into the sandbox before `create` resolves. */
  readonly repository?: { readonly url: string; readonly ref?: string; readonly directory: string }
  /** Names it may reach, such as `packages.example.com:443`. */
  readonly egress?: readonly string[]
  /**
   * What happens to `env` on a pod that runs already. `late` (the default): the daemon inside is told after the claim, so
   * that a warm sandbox is used; `Unsupported` where there is no daemon of ours. `late-or-cold`: there it starts anew.
   * `cold`: the claim carries the variables, which always starts a new pod.
   */
  readonly binding?: 'late' | 'late-or-cold' | 'cold'
}

const createdByKey = 'agents.x-k8s.io/created-by'
const createdBy = { [createdByKey]: 'typescript-client' }
const firstRequestedKey = 'agents.x-k8s.io/client-first-requested-at'
const traceContextKey = 'opentelemetry.io/trace-context'
const egressKey = 'corral.dev/egress'

/** Makes the handle that owns a sandbox. */
interface SandboxOwners {
  /** Whether the way to a sandbox leads over an address in its status, as without saying it may. */
  readonly usesAddresses?: boolean
  owned(
    sandbox: Stored<Sandbox>,
    claimName: string | undefined,
    remove: (signal?: AbortSignal) => Promise<void>,
  ): OwnedSandbox
}

/** Creates, waits until ready, gives it what it is to have, and on any failure removes what was created. */
export async function createSandbox(
  sandboxes: SandboxOwners,
  scope: ClusterScope,
  request: CreateSandboxRequest & WaitOptions & InNamespace,
  traceHeaders: () => Record<string, string> = () => ({}),
): Promise<OwnedSandbox> {
  const { signal, binding = 'late' } = request
  try {
    checkRequest(request)
    const name = request.name ?? `sandbox-${randomBytes(5).toString('hex')}`
    const kube = await scope.kube()
    const namespace = request.namespace ?? (await scope.namespace())
    const ref = { name, namespace }
    const hasEnv = Object.keys(request.env ?? {}).length > 0
    const isLate = isEnvLate(request)
    const attempt = (carriesEnv: boolean) =>
      createOnce(sandboxes, kube, ref, request, { carriesEnv, headers: traceHeaders() })
    const sandbox = await attempt(hasEnv && !isLate)
    try {
      await bind(sandbox, request)
      return sandbox
    } catch (error) {
      // The failure is what the caller needs to know; a left-over ends at its shutdown time.
      await sandbox.delete({ signal: AbortSignal.timeout(10_000) }).catch(() => {})
      const isUnsupported = isLate && toSandboxError(error).code === 'Unsupported'
      if (!isUnsupported || binding !== 'late-or-cold') throw error
    }
    await untilGone(kube, ref, signal)
    const cold = await attempt(true)
    try {
      await bind(cold, { ...request, binding: 'cold' })
      return cold
    } catch (error) {
      await cold.delete({ signal: AbortSignal.timeout(10_000) }).catch(() => {})
      throw error
    }
  } catch (error) {
    throw toSandboxError(error, signal)
  }
}

/** Whether the daemon inside is told of the variables, and not the pod. */
function isEnvLate({ env = {}, podTemplate, binding }: CreateSandboxRequest): boolean {
  return Object.keys(env).length > 0 && !podTemplate && binding !== 'cold'
}

/** Whether a sandbox that is ready has yet to be given something. */
export function isGivenLate(request: CreateSandboxRequest): boolean {
  return isEnvLate(request) || Object.keys(request.files ?? {}).length > 0 || request.repository !== undefined
}

/** Gives a sandbox what it is to have. */
export async function bind(sandbox: SandboxHandle, request: CreateSandboxRequest & WaitOptions): Promise<void> {
  const { env, files = {}, repository, signal } = request
  if (isEnvLate(request) && env) await sandbox.bindEnv(env, signal ? { signal } : {})
  for (const [path, data] of Object.entries(files)) await sandbox.files.write(path, data, { signal })
  if (repository) {
    const { url, directory, ref } = repository
    await sandbox.git.push({ repository: url, directory, signal, ...(ref === undefined ? {} : { ref }) })
  }
}

async function createOnce(
  sandboxes: SandboxOwners,
  kube: KubeClient,
  ref: { name: string; namespace: string },
  request: CreateSandboxRequest & WaitOptions,
  how: { carriesEnv: boolean; headers: Record<string, string> },
): Promise<OwnedSandbox> {
  const kind = request.podTemplate ? Sandboxes : SandboxClaims
  const created = await outlasting(request.signal, (signal) => createObject(kube, ref, { ...request, signal }, how))
  const remove = (signal?: AbortSignal) => deleteExactly(kube, kind, ref, created.metadata.uid, signal)
  try {
    if (request.podTemplate) {
      const judge = readyVerdict('Sandbox', ref.name)
      const sandbox = await waitFor(kube, Sandboxes, ref, judge, { ...request, known: created as Stored<Sandbox> })
      return sandboxes.owned(sandbox, undefined, remove)
    }
    const claimed = await waitForSandbox(
      kube,
      ref,
      request,
      created as Stored<SandboxClaim>,
      sandboxes.usesAddresses ?? true,
    )
    return sandboxes.owned(claimed, ref.name, remove)
  } catch (error) {
    await remove(AbortSignal.timeout(10_000)).catch(() => {})
    throw error
  }
}

async function createObject(
  kube: KubeClient,
  ref: { name: string; namespace: string },
  request: CreateSandboxRequest & WaitOptions,
  how: { carriesEnv: boolean; headers: Record<string, string> },
): Promise<Stored<SandboxClaim> | Stored<Sandbox>> {
  const { labels, ttlMs, egress = [] } = request
  const call = request.signal ? { signal: request.signal } : {}
  const trace = how.headers.traceparent ? { [traceContextKey]: JSON.stringify(how.headers) } : {}
  const annotations = { [firstRequestedKey]: new Date().toISOString(), ...trace, ...request.annotations }
  const metadata = { ...ref, labels: { ...labels, ...createdBy }, annotations }
  const end = request.shutdownTime ?? (ttlMs === undefined ? undefined : shutdownAfter(ttlMs))
  const { shutdownPolicy = 'Delete', ttlSecondsAfterFinished } = request
  const opened = egress.length > 0 ? { [egressKey]: egress.join(', ') } : {}
  if (request.podTemplate) {
    const { podTemplate } = request
    const merged = {
      ...podTemplate,
      metadata: {
        ...podTemplate.metadata,
        labels: { ...podTemplate.metadata?.labels, ...request.podLabels },
        annotations: { ...podTemplate.metadata?.annotations, ...request.podAnnotations, ...opened },
      },
      spec: withEnv(podTemplate.spec, request.env),
    }
    const policy = shutdownPolicy === 'DeleteForeground' ? 'Delete' : shutdownPolicy
    const shutdown = end ? { shutdownTime: toSeconds(end), shutdownPolicy: policy } : {}
    return kube.create(Sandboxes, { metadata, spec: { podTemplate: merged, ...shutdown } }, call)
  }
  const pool = request.pool ?? (await poolFor(kube, ref.namespace, request.template ?? '', call))
  const env = how.carriesEnv ? Object.entries(request.env ?? {}).map(([name, value]) => ({ name, value })) : []
  const podAnnotations = { ...request.podAnnotations, ...opened }
  const podMetadata = {
    ...(request.podLabels ? { labels: { ...request.podLabels } } : {}),
    ...(Object.keys(podAnnotations).length > 0 ? { annotations: podAnnotations } : {}),
  }
  const lifecycle = {
    ...(end ? { shutdownTime: toSeconds(end), shutdownPolicy } : {}),
    ...(ttlSecondsAfterFinished === undefined ? {} : { ttlSecondsAfterFinished }),
  }
  const spec: SandboxClaimSpec = {
    warmPoolRef: { name: pool },
    ...(Object.keys(lifecycle).length > 0 ? { lifecycle } : {}),
    ...(env.length > 0 ? { env } : {}),
    ...(Object.keys(podMetadata).length > 0 ? { additionalPodMetadata: podMetadata } : {}),
    ...(request.volumeClaimTemplates ? { volumeClaimTemplates: request.volumeClaimTemplates } : {}),
  }
  return kube.create(SandboxClaims, { metadata, spec }, call)
}

function withEnv(spec: SandboxPodTemplate['spec'], env: Readonly<Record<string, string>> | undefined) {
  if (!env || Object.keys(env).length === 0) return spec
  const added = Object.entries(env).map(([name, value]) => ({ name, value }))
  const containers = spec.containers.map((container) => ({ ...container, env: [...(container.env ?? []), ...added] }))
  return { ...spec, containers }
}

const bindings: readonly string[] = ['late', 'late-or-cold', 'cold']

/** Refuses what cannot work before anything is sent. */
function checkRequest(request: CreateSandboxRequest & WaitOptions): void {
  const sources = [request.pool, request.template, request.podTemplate].filter((source) => source)
  if (sources.length === 0) throw new SandboxError('Invalid', 'a sandbox needs a pool, a template or a podTemplate')
  if (sources.length > 1)
    throw new SandboxError('Invalid', 'a sandbox has one of pool, template and podTemplate, not several')
  timeLimit(request.timeoutMs)
  if (request.binding !== undefined && !bindings.includes(request.binding))
    throw new SandboxError('Invalid', `binding "${request.binding}" is none of ${bindings.join(', ')}`)
  if (request.shutdownTime && Number.isNaN(request.shutdownTime.getTime()))
    throw new SandboxError('Invalid', 'shutdownTime is no time')
  for (const rule of request.egress ?? []) {
    const { error } = egressRuleSchema.safeParse(rule)
    if (error) throw new SandboxError('Invalid', `egress "${rule}" ${error.issues[0]?.message}`)
  }
  for (const [where, labels] of [
    ['labels', request.labels],
    ['podLabels', request.podLabels],
  ] as const) {
    for (const [key, value] of Object.entries(labels ?? {})) {
      const problem = qualifiedNameError(key) ?? labelValueError(value)
      if (problem) throw new SandboxError('Invalid', `${where} "${key}": ${problem}`)
    }
  }
  if (request.ttlMs !== undefined) toSeconds(shutdownAfter(request.ttlMs))
  for (const [name, value] of Object.entries(request.env ?? {})) {
    if (!/^[^=\0]+$/.test(name) || typeof value !== 'string' || value.includes('\0'))
      throw new SandboxError('Invalid', `"${name}" is not a variable`)
  }
  for (const path of Object.keys(request.files ?? {})) {
    if (!path.startsWith('/')) throw new SandboxError('Invalid', `files: "${path}" is not an absolute path`)
  }
}

/** A pool of this template; where there is none, one without warm sandboxes is made, since claims name pools. */
async function poolFor(
  kube: KubeClient,
  namespace: string,
  template: string,
  call: { signal?: AbortSignal },
): Promise<string> {
  await kube.get(SandboxTemplates, { name: template, namespace }, call)
  for await (const pool of kube.items(SandboxWarmPools, { namespace, ...call })) {
    if (pool.spec.sandboxTemplateRef.name === template && !pool.metadata.deletionTimestamp) return pool.metadata.name
  }
  try {
    const spec = { replicas: 0, sandboxTemplateRef: { name: template } }
    const pool = { metadata: { name: template, namespace, labels: createdBy }, spec }
    await kube.create(SandboxWarmPools, pool, call)
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
  }
  return template
}

async function untilGone(
  kube: KubeClient,
  ref: { name: string; namespace: string },
  signal?: AbortSignal,
): Promise<void> {
  const call = signal ? { signal } : {}
  const found = await kube.find(SandboxClaims, ref, call)
  if (!found) return
  const where = { namespace: ref.namespace, fieldSelector: `metadata.name=${ref.name}` }
  for await (const { type } of kube.watch(SandboxClaims, {
    ...where,
    resourceVersion: found.metadata.resourceVersion,
    ...call,
  })) {
    if (type === 'DELETED') return
  }
}

/** Deletes the object we made and never another that took its name. */
async function deleteExactly(
  kube: KubeClient,
  kind: ResourceKind,
  ref: { name: string; namespace: string },
  uid: string,
  signal?: AbortSignal,
): Promise<void> {
  try {
    await kube.delete(kind, ref, { preconditions: { uid }, ...(signal ? { signal } : {}) })
  } catch (error) {
    const isGone = isNotFound(error) || toSandboxError(error).code === 'Conflict'
    if (!isGone) throw toSandboxError(error, signal)
  }
}
