import { randomBytes } from 'node:crypto'
import type { KubeClient } from '@corral/kube'
import {
  isAlreadyExists,
  isNotFound,
  type ResourceKind,
  type SandboxClaim,
  type SandboxClaimSpec,
  SandboxClaims,
  Sandboxes,
  type SandboxPodTemplate,
  SandboxTemplates,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import type { ClusterScope, InNamespace } from './resource-collection.js'
import { readyVerdict, type SandboxCollection } from './sandbox-collection.js'
import { SandboxError, toSandboxError } from './sandbox-error.js'
import { OwnedSandbox } from './sandbox-handle.js'
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
  /** When the cluster ends it by itself, whatever becomes of us. */
  readonly shutdownTime?: Date
  /** Forces a fresh start: a warm sandbox cannot be given variables. Claims only. */
  readonly env?: Readonly<Record<string, string>>
}

const createdBy = { 'agents.x-k8s.io/created-by': 'typescript-client' }

/** Creates, waits until ready, and on any failure removes what was created. */
export async function createSandbox(
  sandboxes: SandboxCollection,
  scope: ClusterScope,
  request: CreateSandboxRequest & WaitOptions & InNamespace,
): Promise<OwnedSandbox> {
  const { signal } = request
  const name = request.name ?? `sandbox-${randomBytes(5).toString('hex')}`
  try {
    const kube = await scope.kube()
    const namespace = request.namespace ?? (await scope.namespace())
    const ref = { name, namespace }
    const kind = request.podTemplate ? Sandboxes : SandboxClaims
    const { uid } = await createObject(kube, ref, request)
    const remove = (removeSignal?: AbortSignal) => deleteExactly(kube, kind, ref, uid, removeSignal)
    try {
      const sandboxName = request.podTemplate
        ? (await sandboxes.waitForReady(name, { ...request, namespace })).metadata.name
        : await waitForClaim(kube, ref, request)
      const claimName = request.podTemplate ? undefined : name
      return new OwnedSandbox(sandboxes, { name: sandboxName, namespace, claimName }, remove)
    } catch (error) {
      // The failure is what the caller needs to know; a left-over ends at its shutdown time.
      await remove(AbortSignal.timeout(10_000)).catch(() => {})
      throw error
    }
  } catch (error) {
    throw toSandboxError(error, signal)
  }
}

async function createObject(
  kube: KubeClient,
  ref: { name: string; namespace: string },
  request: CreateSandboxRequest & WaitOptions,
): Promise<{ uid: string }> {
  const { labels, annotations, shutdownTime } = request
  const call = request.signal ? { signal: request.signal } : {}
  const metadata = { ...ref, labels: { ...createdBy, ...labels }, ...(annotations ? { annotations } : {}) }
  const shutdown = shutdownTime
    ? { shutdownTime: shutdownTime.toISOString().replace(/\.\d+Z$/, 'Z'), shutdownPolicy: 'Delete' as const }
    : undefined
  if (request.podTemplate) {
    const spec = { podTemplate: request.podTemplate, ...shutdown }
    return (await kube.create(Sandboxes, { metadata, spec }, call)).metadata
  }
  const pool = request.pool ?? (await poolFor(kube, ref.namespace, request.template ?? '', call))
  const env = Object.entries(request.env ?? {}).map(([variable, value]) => ({ name: variable, value }))
  const spec: SandboxClaimSpec = {
    warmPoolRef: { name: pool },
    ...(shutdown ? { lifecycle: shutdown } : {}),
    ...(env.length > 0 ? { env } : {}),
  }
  return (await kube.create(SandboxClaims, { metadata, spec }, call)).metadata
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

async function waitForClaim(
  kube: KubeClient,
  ref: { name: string; namespace: string },
  options: WaitOptions,
): Promise<string> {
  const judge = readyVerdict('SandboxClaim', ref.name)
  const claim: Stored<SandboxClaim> = await waitFor(
    kube,
    SandboxClaims,
    ref,
    (object) => {
      const verdict = judge(object)
      if (!verdict.done || object.status?.sandbox?.name) return verdict
      return { done: false, why: 'the claim names no sandbox yet' }
    },
    options,
  )
  const name = claim.status?.sandbox?.name
  if (!name) throw new SandboxError('ProtocolViolation', `claim "${ref.name}" is ready without a sandbox`)
  return name
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
