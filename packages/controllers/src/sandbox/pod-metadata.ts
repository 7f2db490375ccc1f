import { controllerOf, type ObjectMeta, type Sandbox } from '@corral/resources'
import { annotations, isReservedAnnotation, isReservedKey, labels, normalizeCreatedBy } from '../shared/names.js'
import { isExtensionsOwner } from '../shared/ownership.js'

type Names = Record<string, string>

/** Labels a Pod inherits from the Sandbox itself, where an extensions kind controls it. */
const extensionLabelKeys = [labels.claimUid, labels.warmPool, labels.templateRefHash] as const

export interface PodMetadata {
  labels: Names
  annotations: Names
}

/** Labels and annotations of a Pod that does not exist yet. */
export function newPodMetadata(sandbox: Sandbox, nameHash: string): PodMetadata {
  const template = sandbox.spec.podTemplate.metadata
  const userLabels = keep(template?.labels, isReservedKey)
  const userAnnotations = keep(template?.annotations, isReservedAnnotation)
  const result: PodMetadata = {
    labels: { ...userLabels, [labels.nameHash]: nameHash, ...extensionLabels(sandbox), ...createdBy(sandbox) },
    annotations: { ...userAnnotations },
  }
  const labelList = keyList(userLabels)
  const annotationList = keyList(userAnnotations)
  if (labelList) result.annotations[annotations.propagatedLabels] = labelList
  if (annotationList) result.annotations[annotations.propagatedAnnotations] = annotationList
  return result
}

/**
 * Labels and annotations an existing Pod should have: what the template asks for, minus what an earlier template asked
 * for. Everything that others put on the Pod stays. The two `propagated-*` annotations remember which keys are ours.
 */
export function existingPodMetadata(pod: ObjectMeta, sandbox: Sandbox, nameHash: string): PodMetadata {
  const template = sandbox.spec.podTemplate.metadata
  const userLabels = keep(template?.labels, isReservedKey)
  const userAnnotations = keep(template?.annotations, isReservedAnnotation)
  const result: PodMetadata = {
    labels: { ...pod.labels, [labels.nameHash]: nameHash, ...userLabels },
    annotations: { ...pod.annotations, ...userAnnotations },
  }
  const remembered = pod.annotations ?? {}
  for (const key of recordedKeys(remembered[annotations.propagatedLabels])) {
    if (key !== labels.nameHash && (isReservedKey(key) || !(key in userLabels))) delete result.labels[key]
  }
  for (const key of recordedKeys(remembered[annotations.propagatedAnnotations])) {
    const ours = key === annotations.propagatedLabels || key === annotations.propagatedAnnotations
    if (!ours && (isReservedAnnotation(key) || !(key in userAnnotations))) delete result.annotations[key]
  }
  for (const key of extensionLabelKeys) delete result.labels[key]
  delete result.labels[labels.createdBy]
  Object.assign(result.labels, extensionLabels(sandbox), createdBy(sandbox))
  record(result.annotations, annotations.propagatedLabels, keyList(userLabels))
  record(result.annotations, annotations.propagatedAnnotations, keyList(userAnnotations))
  return result
}

function extensionLabels(sandbox: Sandbox): Names {
  const controller = controllerOf(sandbox)
  if (!isExtensionsOwner(controller)) return {}
  const own = sandbox.metadata?.labels ?? {}
  const result: Names = {}
  const copy = (key: string): void => {
    if (own[key]) result[key] = own[key]
  }
  if (controller?.kind === 'SandboxClaim') copy(labels.claimUid)
  if (controller?.kind === 'SandboxWarmPool') copy(labels.warmPool)
  copy(labels.templateRefHash)
  return result
}

function createdBy(sandbox: Sandbox): Names {
  const value = sandbox.metadata?.labels?.[labels.createdBy]
  return value ? { [labels.createdBy]: normalizeCreatedBy(value) } : {}
}

function keep(from: Names | undefined, isReserved: (key: string) => boolean): Names {
  return Object.fromEntries(Object.entries(from ?? {}).filter(([key]) => !isReserved(key)))
}

function keyList(names: Names): string {
  return Object.keys(names).sort().join(',')
}

function recordedKeys(list: string | undefined): string[] {
  return list ? list.split(',') : []
}

/** An emptied list is kept as an empty string; a list that never was is not begun with one. */
function record(target: Names, key: string, list: string): void {
  if (list || target[key]) target[key] = list
}
