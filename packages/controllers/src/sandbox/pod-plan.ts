import {
  type ObjectMeta,
  ownerReferenceTo,
  type Pod,
  type PodSpec,
  type Sandbox,
  Sandboxes,
  type Stored,
  type Volume,
} from '@corral/resources'
import { mergeDiff } from '../shared/merge-diff.js'
import { annotations } from '../shared/names.js'
import { cannotAdopt, mayAdopt, ownedByOther, ownershipOf } from '../shared/ownership.js'
import type { ChildStep } from './child-step.js'
import { existingPodMetadata, newPodMetadata } from './pod-metadata.js'

export interface PodWorld {
  sandbox: Stored<Sandbox>
  nameHash: string
  /** Pods of the namespace that carry our hash. */
  hashedPods: readonly Stored<Pod>[]
  /** The Pod of the expected name. */
  namedPod: Stored<Pod> | undefined
  /** How long a metadata-only patch may still wait for company; 0 writes at once. */
  deferMs: number
}

export interface PodStep extends ChildStep<Stored<Pod>> {
  /** How many Pods claim to be the one; with more than one, none is changed. */
  ownedCount: number
  /** The metadata patch that was left for later. */
  deferred?: boolean
}

/** What the Sandbox's Pod needs next. */
export function planPod(world: PodWorld): PodStep {
  const { sandbox, namedPod } = world
  const owned = world.hashedPods.filter((pod) => ownershipOf(pod, sandbox).kind === 'owned')
  if (namedPod && ownershipOf(namedPod, sandbox).kind === 'owned' && !owned.some((pod) => sameName(pod, namedPod))) {
    owned.push(namedPod)
  }
  const hasNote = sandbox.metadata.annotations?.[annotations.podName] !== undefined
  const step: PodStep = { actions: [], ownedCount: owned.length }
  if (!namedPod && hasNote) step.actions.push({ kind: 'forgetPodName' })
  if (owned.length > 1) return step

  const ours = owned[0]
  // The Pod we control is the one, whatever a stale note points at.
  const pod = ours ?? namedPod
  if (ours && namedPod && !sameName(ours, namedPod) && hasNote) step.actions.push({ kind: 'forgetPodName' })
  const noteLeft = hasNote && step.actions.length === 0
  if (sandbox.spec.operatingMode === 'Suspended') return suspend(step, pod, sandbox, noteLeft)
  return pod ? keep(step, pod, world, noteLeft) : create(step, world)
}

function suspend(step: PodStep, pod: Stored<Pod> | undefined, sandbox: Stored<Sandbox>, hasNote: boolean): PodStep {
  step.found = pod
  if (pod && ownershipOf(pod, sandbox).kind === 'owned') {
    if (!pod.metadata.deletionTimestamp) {
      const name = pod.metadata.name
      step.actions.push({ kind: 'delete', child: 'pod', name, missingIsFine: false, failure: 'failed to delete pod' })
    }
    return step
  }
  if (hasNote) step.actions.push({ kind: 'forgetPodName' })
  return step
}

function keep(step: PodStep, pod: Stored<Pod>, world: PodWorld, hasNote: boolean): PodStep {
  const { sandbox, nameHash } = world
  const ownership = ownershipOf(pod, sandbox)
  if (ownership.kind === 'other') {
    if (hasNote) step.actions.push({ kind: 'forgetPodName' })
    return { ...step, error: ownedByOther('pod', pod.metadata.name, ownership.controller, sandbox.metadata.name) }
  }
  if (ownership.kind === 'unowned' && !mayAdopt(pod, nameHash)) {
    return { ...step, error: cannotAdopt('pod', pod.metadata.name) }
  }
  const desired: ObjectMeta = existingPodMetadata(pod.metadata, sandbox, nameHash)
  const current: ObjectMeta = { labels: pod.metadata.labels ?? {}, annotations: pod.metadata.annotations ?? {} }
  if (ownership.kind === 'unowned') {
    current.ownerReferences = pod.metadata.ownerReferences ?? []
    desired.ownerReferences = [...current.ownerReferences, ownerReferenceTo(sandbox, Sandboxes)]
  }
  const metadata = mergeDiff(current, desired)
  step.found = pod
  if (!metadata) return step
  if (ownership.kind === 'owned' && world.deferMs > 0) return { ...step, deferred: true }
  const patch = { metadata }
  step.actions.push({ kind: 'patch', child: 'pod', name: pod.metadata.name, patch, failure: 'failed to patch pod' })
  return step
}

function create(step: PodStep, { sandbox, nameHash }: PodWorld): PodStep {
  const metadata = newPodMetadata(sandbox, nameHash)
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: sandbox.metadata.name,
      ...(sandbox.metadata.namespace !== undefined && { namespace: sandbox.metadata.namespace }),
      labels: metadata.labels,
      ...(Object.keys(metadata.annotations).length > 0 && { annotations: metadata.annotations }),
      ownerReferences: [ownerReferenceTo(sandbox, Sandboxes)],
    },
    spec: podSpec(sandbox),
  }
  step.actions.push({ kind: 'create', child: 'pod', object: pod })
  return step
}

/** The template's spec with one volume per claim template; a template volume of the same name gives way. */
function podSpec(sandbox: Stored<Sandbox>): PodSpec {
  const spec = sandbox.spec.podTemplate.spec
  const claims: Volume[] = (sandbox.spec.volumeClaimTemplates ?? []).map((template) => {
    const name = template.metadata?.name ?? ''
    return { name, persistentVolumeClaim: { claimName: `${name}-${sandbox.metadata.name}` } }
  })
  if (claims.length === 0) return spec
  const taken = new Set(claims.map((volume) => volume.name))
  return { ...spec, volumes: [...(spec.volumes ?? []).filter((volume) => !taken.has(volume.name)), ...claims] }
}

function sameName(a: Stored<Pod>, b: Stored<Pod>): boolean {
  return a.metadata.name === b.metadata.name && a.metadata.namespace === b.metadata.namespace
}
