import { type KubeObject, Pods } from '@corral/resources'
import { forbiddenField } from '../errors/api-error.js'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { timestamp } from '../objects/timestamps.js'
import { podChangeErrors } from '../validation/pod-change.js'
import { podSpecErrors } from '../validation/pod-spec.js'
import { podWarnings } from '../validation/pod-warnings.js'
import { errorsOfChange, objectOf, objectsIn } from '../validation/rules.js'
import { describeKind, type KindDefinition, type SubresourceDefinition } from './kind-definition.js'
import { GATED_TEXT } from './plan-binding.js'
import { preparePodStatus, validatePodStatus } from './pod-status.js'
import { admitRuntimeClass } from './runtime-class.js'
import { fieldReader } from './selectable-fields.js'

const stream = (name: string, kind: string): SubresourceDefinition => ({
  name,
  group: '',
  version: 'v1',
  kind,
  verbs: ['create', 'get'],
})

/** Pods: defaults, a spec that hardly changes, graceful deletion, and the sub-resources a kubelet serves. */
export const podKind: KindDefinition = describeKind(Pods, {
  shortNames: ['po'],
  categories: ['all'],
  hasStatus: true,
  generation: 'spec',
  answersDeleteWithObject: true,
  subresources: [
    stream('attach', 'PodAttachOptions'),
    { name: 'binding', group: '', version: 'v1', kind: 'Binding', verbs: ['create'] },
    { name: 'eviction', group: 'policy', version: 'v1', kind: 'Eviction', verbs: ['create'] },
    stream('exec', 'PodExecOptions'),
    { name: 'log', group: '', version: 'v1', kind: 'Pod', verbs: ['get'] },
    stream('portforward', 'PodPortForwardOptions'),
  ],
  selectable: {
    'spec.nodeName': fieldReader('spec.nodeName'),
    'spec.restartPolicy': fieldReader('spec.restartPolicy'),
    'spec.schedulerName': fieldReader('spec.schedulerName'),
    'spec.serviceAccountName': fieldReader('spec.serviceAccountName'),
    'spec.hostNetwork': (pod) => String(Boolean((pod as PodShape).spec?.hostNetwork)),
    'status.phase': fieldReader('status.phase'),
    'status.podIP': fieldReader('status.podIP'),
    'status.podIPs': (pod) => ((pod as PodShape).status?.podIPs ?? []).map((entry) => entry.ip).join(','),
    'status.nominatedNodeName': fieldReader('status.nominatedNodeName'),
  },
  defaults(pod) {
    if (!isJsonObject(pod.spec)) return
    defaultPodSpec(pod.spec)
    for (const container of containersOf(pod.spec)) requestLimits(container)
    pod.spec.enableServiceLinks ??= true
  },
  prepareCreate(pod, { now, findRuntimeClass }) {
    const spec = isJsonObject(pod.spec) ? pod.spec : {}
    admitPodSpec(spec)
    admitRuntimeClass(pod, findRuntimeClass)
    pod.status = { phase: 'Pending', ...heldBack(spec, now), qosClass: qosClass(spec) }
  },
  validate(pod, old) {
    const errors = errorsOfChange(pod, old, ['spec'], () => podSpecErrors(objectOf(pod.spec)))
    if (!old && objectsIn(objectOf(pod.spec).ephemeralContainers).length > 0)
      errors.push(forbiddenField('spec.ephemeralContainers', 'cannot be set on create'))
    if (old && isJsonObject(pod.spec) && isJsonObject(old.spec)) errors.push(...podChangeErrors(pod.spec, old.spec))
    return errors
  },
  warnings: podWarnings,
  prepareStatus: preparePodStatus,
  validateStatus: validatePodStatus,
  graceSeconds(pod, requested) {
    const spec = pod.spec as PodShape['spec']
    const phase = (pod.status as PodShape['status'])?.phase
    if (!spec?.nodeName || phase === 'Succeeded' || phase === 'Failed') return 0
    const seconds = requested ?? spec.terminationGracePeriodSeconds ?? 30
    return seconds < 0 ? 1 : seconds
  },
})

/** A pod with a gate says from the start that it waits for its removal. */
function heldBack(spec: JsonObject, now: Date): JsonObject {
  if (objectsIn(spec.schedulingGates).length === 0) return {}
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    lastProbeTime: null,
    lastTransitionTime: timestamp(now),
    reason: 'SchedulingGated',
    message: GATED_TEXT,
  }
  return { conditions: [condition] }
}

const TOLERATED = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']

/** What Kubernetes' default admission adds to a pod: a priority, and patience with a node that is not there. */
function admitPodSpec(spec: JsonObject): void {
  spec.priority ??= 0
  spec.preemptionPolicy ??= 'PreemptLowerPriority'
  const tolerations = objectsIn(spec.tolerations)
  const missing = TOLERATED.filter((key) => !tolerations.some((each) => isTolerated(each, key)))
  if (missing.length === 0) return
  const added = missing.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 }))
  spec.tolerations = [...tolerations, ...added]
}

const isTolerated = (toleration: JsonObject, key: string): boolean =>
  (toleration.key === key || !toleration.key) && (toleration.effect === 'NoExecute' || !toleration.effect)

interface PodShape extends KubeObject {
  spec?: { nodeName?: string; hostNetwork?: boolean; terminationGracePeriodSeconds?: number }
  status?: { phase?: string; podIPs?: { ip: string }[] }
}

/** Fills in what a pod's author may leave out. Used for pods and for the templates of workload kinds. */
export function defaultPodSpec(spec: JsonObject): void {
  spec.restartPolicy ||= 'Always'
  spec.dnsPolicy ||= 'ClusterFirst'
  spec.terminationGracePeriodSeconds ??= 30
  if (Number(spec.terminationGracePeriodSeconds) < 0) spec.terminationGracePeriodSeconds = 1
  spec.schedulerName ??= 'default-scheduler'
  spec.securityContext ??= {}
  if (spec.serviceAccountName && !spec.serviceAccount) spec.serviceAccount = spec.serviceAccountName
  for (const container of containersOf(spec)) defaultContainer(container, spec.hostNetwork === true)
  for (const volume of objectsIn(spec.volumes)) defaultVolume(volume)
}

function defaultContainer(container: JsonObject, isOnHost: boolean): void {
  const image = typeof container.image === 'string' ? container.image : ''
  const tag = image.includes('@') ? 'digest' : image.slice(image.lastIndexOf('/') + 1).split(':')[1]
  container.imagePullPolicy ??= tag === undefined || tag === 'latest' ? 'Always' : 'IfNotPresent'
  container.terminationMessagePath ??= '/dev/termination-log'
  container.terminationMessagePolicy ??= 'File'
  container.resources ??= {}
  for (const port of objectsIn(container.ports)) {
    port.protocol ??= 'TCP'
    if (isOnHost) port.hostPort ??= port.containerPort
  }
  for (const handler of Object.values(objectOf(container.lifecycle))) defaultHttpGet(objectOf(handler))
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    const probe = container[name]
    if (isJsonObject(probe)) defaultProbe(probe)
  }
  for (const entry of objectsIn(container.env)) {
    const source = entry.valueFrom
    if (isJsonObject(source) && isJsonObject(source.fieldRef)) source.fieldRef.apiVersion ??= 'v1'
  }
}

/** Who names a limit and no request asks for as much; said in the pod, not in the template it comes from. */
function requestLimits({ resources }: JsonObject): void {
  if (!isJsonObject(resources) || !isJsonObject(resources.limits)) return
  resources.requests = { ...resources.limits, ...(isJsonObject(resources.requests) ? resources.requests : {}) }
}

function defaultProbe(probe: JsonObject): void {
  probe.timeoutSeconds ??= 1
  probe.periodSeconds ??= 10
  probe.successThreshold ??= 1
  probe.failureThreshold ??= 3
  defaultHttpGet(probe)
  if (isJsonObject(probe.grpc)) probe.grpc.service ??= ''
}

function defaultHttpGet({ httpGet }: JsonObject): void {
  if (!isJsonObject(httpGet)) return
  httpGet.path ??= '/'
  httpGet.scheme ??= 'HTTP'
}

const FILE_MODE = 0o644

function defaultVolume(volume: JsonObject): void {
  for (const name of ['secret', 'configMap', 'downwardAPI', 'projected']) {
    const source = volume[name]
    if (isJsonObject(source)) source.defaultMode ??= FILE_MODE
  }
  for (const { fieldRef } of objectsIn(objectOf(volume.downwardAPI).items))
    if (isJsonObject(fieldRef)) fieldRef.apiVersion ??= 'v1'
  if (isJsonObject(volume.hostPath)) volume.hostPath.type ??= ''
  if (!Object.keys(volume).some((key) => key !== 'name')) volume.emptyDir = {}
}

function containersOf(spec: JsonObject): JsonObject[] {
  return [...objectsIn(spec.initContainers), ...objectsIn(spec.containers)]
}

/** Kubernetes' quality-of-service class from requests and limits of cpu and memory. */
export function qosClass(spec: JsonObject): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  let hasAny = false
  let isGuaranteed = true
  for (const container of containersOf(spec)) {
    const resources = isJsonObject(container.resources) ? container.resources : {}
    const limits = isJsonObject(resources.limits) ? resources.limits : {}
    const requests = isJsonObject(resources.requests) ? resources.requests : {}
    for (const name of ['cpu', 'memory']) {
      if (limits[name] !== undefined || requests[name] !== undefined) hasAny = true
      if (limits[name] === undefined || (requests[name] ?? limits[name]) !== limits[name]) isGuaranteed = false
    }
  }
  return !hasAny ? 'BestEffort' : isGuaranteed ? 'Guaranteed' : 'Burstable'
}
