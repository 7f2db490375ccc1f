import {
  type ConditionUpdate,
  errorCode,
  isConditionTrue,
  isControlledBy,
  type Pod,
  removeCondition,
  type Sandbox,
  type SandboxStatus,
  type Service,
  type Stored,
  setCondition,
} from '@corral/resources'
import { errorText, joinErrors } from '../shared/error-text.js'
import { labels } from '../shared/names.js'
import type { UpstreamRelease } from '../shared/upstream-release.js'
import type { ChildOutcome } from './child-step.js'

/** What one pass learned about the Sandbox's children. */
export interface SandboxChildren {
  sandbox: Stored<Sandbox>
  nameHash: string
  clusterDomain: string
  pvcErrors: readonly unknown[]
  pod: ChildOutcome<Stored<Pod>>
  /** More than one Pod is controlled by this Sandbox. */
  multiplePods?: { count: number } | undefined
  service: ChildOutcome<Stored<Service>>
  now: Date
  /** What later releases of upstream do. */
  upstreamRelease?: UpstreamRelease | undefined
  /** Adds the cause to a message that only says "not ready". */
  explain?: ((pod: Stored<Pod>) => string | undefined) | undefined
}

export function multiplePodsText(count: number): string {
  return `multiple Pods (${count}) are controlled by this Sandbox; refusing to choose or create a Pod`
}

/** The whole status after a pass that looked after the children. */
export function sandboxStatus(children: SandboxChildren): SandboxStatus {
  const { sandbox, now } = children
  const before = sandbox.status ?? {}
  const drafts = [suspended(children), finished(children), podScheduled(children), ready(children)]
  let conditions = [...(before.conditions ?? [])]
  for (const draft of drafts) if (draft) conditions = setCondition(conditions, draft, now)
  if (!drafts[1]) conditions = removeCondition(conditions, 'Finished')
  if (!drafts[2]) conditions = removeCondition(conditions, 'PodScheduled')
  return { ...serviceFields(children, before), ...podFields(children, before), conditions }
}

function podFields({ sandbox, nameHash, pod: { object: pod } }: SandboxChildren, before: SandboxStatus): SandboxStatus {
  const selector = pod ? `${labels.nameHash}=${nameHash}` : before.selector
  const fields: SandboxStatus = selector ? { selector } : {}
  if (!pod || !isControlledBy(pod, sandbox)) return fields
  const podIPs = (pod.status?.podIPs ?? []).map((entry) => entry.ip ?? '')
  if (podIPs.length > 0) fields.podIPs = podIPs
  if (pod.spec?.nodeName) fields.nodeName = pod.spec.nodeName
  return fields
}

function serviceFields(
  { service, clusterDomain, multiplePods }: SandboxChildren,
  before: SandboxStatus,
): SandboxStatus {
  if (service.errors.length > 0 || multiplePods) {
    return {
      ...(before.service && { service: before.service }),
      ...(before.serviceFQDN && { serviceFQDN: before.serviceFQDN }),
    }
  }
  if (!service.object) return {}
  const { name, namespace } = service.object.metadata
  return { service: name, serviceFQDN: `${name}.${namespace}.svc.${clusterDomain}` }
}

function draft(
  { sandbox }: SandboxChildren,
  type: string,
  status: ConditionUpdate['status'],
  reason: string,
  message: string,
): ConditionUpdate {
  return { type, status, reason, message, observedGeneration: sandbox.metadata.generation ?? 0 }
}

/** The Pod could not even be looked at. */
function podUnknown({ pod, multiplePods }: SandboxChildren): boolean {
  return !pod.object && (pod.errors.length > 0 || multiplePods !== undefined)
}

function suspended(children: SandboxChildren): ConditionUpdate {
  const { sandbox, pod } = children
  const say = (status: ConditionUpdate['status'], reason: string, message: string): ConditionUpdate =>
    draft(children, 'Suspended', status, reason, message)
  if (sandbox.spec.operatingMode !== 'Suspended') return say('False', 'NotSuspended', 'Sandbox is not suspended')
  if (podUnknown(children)) {
    return say('Unknown', 'PodStateUnknown', 'Pod state is unknown. Sandbox suspension cannot be confirmed')
  }
  if (!pod.object) return say('True', 'PodTerminated', 'Pod has been terminated. Sandbox is suspended')
  if (!isControlledBy(pod.object, sandbox)) {
    return say('False', 'PodNotOwned', 'Refused to delete pod because it is not owned by this sandbox')
  }
  return say('False', 'PodTerminating', 'Pod is terminating. Sandbox is suspending')
}

function finished(children: SandboxChildren): ConditionUpdate | undefined {
  const { sandbox, pod } = children
  if (!pod.object || !isControlledBy(pod.object, sandbox)) return undefined
  const end = ended(pod.object)
  return end && draft(children, 'Finished', 'True', end.reason, end.message)
}

function ended(pod: Pod): { reason: string; message: string } | undefined {
  if (pod.status?.phase === 'Succeeded') return { reason: 'PodSucceeded', message: 'Pod completed successfully' }
  if (pod.status?.phase === 'Failed') return { reason: 'PodFailed', message: 'Pod failed' }
  return undefined
}

function podScheduled(children: SandboxChildren): ConditionUpdate | undefined {
  const { sandbox, pod } = children
  const unknown = (message: string): ConditionUpdate =>
    draft(children, 'PodScheduled', 'Unknown', 'PodSchedulingUnknown', message)
  if (podUnknown(children)) return unknown('Pod state is unknown. Pod scheduling cannot be determined')
  if (!pod.object || !isControlledBy(pod.object, sandbox)) return undefined
  const reported = pod.object.status?.conditions?.find((condition) => condition.type === 'PodScheduled')
  if (!reported) return unknown('Pod has not reported a PodScheduled condition yet')
  const status = reported.status as ConditionUpdate['status']
  const fallback = status === 'True' ? 'PodScheduled' : 'PodSchedulingUnknown'
  return draft(children, 'PodScheduled', status, reported.reason || fallback, reported.message ?? '')
}

function ready(children: SandboxChildren): ConditionUpdate {
  const { sandbox, pod, service, multiplePods } = children
  const say = (status: ConditionUpdate['status'], reason: string, message: string): ConditionUpdate =>
    draft(children, 'Ready', status, reason, message)
  if (multiplePods) return say('False', 'MultiplePods', multiplePodsText(multiplePods.count))
  const errors = [...children.pvcErrors, ...pod.errors, ...service.errors]
  if (errors.length > 0) {
    const text = joinErrors(errors.map(errorText))
    if (children.upstreamRelease?.invalidConfiguration && isRefusedForGood(errors))
      return say('False', 'InvalidConfiguration', text)
    return say('False', 'ReconcilerError', `Error seen: ${text}`)
  }
  if (sandbox.spec.operatingMode === 'Suspended') {
    return say('False', 'SandboxSuspended', pod.object ? 'Sandbox is suspending' : 'Sandbox is suspended')
  }
  const end = pod.object && ended(pod.object)
  if (end) return say('False', end.reason, end.message)

  const state = podState(pod.object, children.upstreamRelease?.terminatingPods === true)
  const needsService = sandbox.spec.service ?? service.object !== undefined
  const parts = [state.text]
  if (needsService) parts.push(service.object ? 'Service Exists' : 'Service does not exist')
  if (state.isReady && (!needsService || service.object)) return say('True', 'DependenciesReady', parts.join('; '))
  const cause = pod.object && children.explain?.(pod.object)
  if (cause) parts.push(cause)
  return say('False', 'DependenciesNotReady', parts.join('; '))
}

/** Whether the server called everything that failed invalid: it will say so again until the spec changes. */
export function isRefusedForGood(errors: readonly unknown[]): boolean {
  return errors.length > 0 && errors.every((error) => errorCode(error) === 'Invalid')
}

function podState(pod: Pod | undefined, isOutWhenTerminating: boolean): { text: string; isReady: boolean } {
  if (!pod) return { text: 'Pod does not exist', isReady: false }
  if (isOutWhenTerminating && pod.metadata?.deletionTimestamp) return { text: 'Pod is terminating', isReady: false }
  const { phase = '', conditions, podIPs = [] } = pod.status ?? {}
  if (phase !== 'Running') return { text: `Pod exists with phase: ${phase}`, isReady: false }
  const podReady = conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True')
  if (!podReady) return { text: 'Pod is Running but not Ready', isReady: false }
  if (podIPs.length === 0) return { text: 'Pod is Ready but has no podIPs yet', isReady: false }
  return { text: 'Pod is Ready', isReady: true }
}

/** A changed node alone is not worth a write before the Sandbox can be used: the next write carries it. */
export function isNodeNameOnly(before: SandboxStatus, after: SandboxStatus, diff: object): boolean {
  const changed = Object.keys(diff)
  return (
    changed.length === 1 && changed[0] === 'nodeName' && !isConditionTrue(after.conditions, 'Ready') && before !== after
  )
}
