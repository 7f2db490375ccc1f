import { canonicalQuantity, dns1123LabelError, type KubeObject, Pods, RuntimeClasses } from '@corral/resources'
import { type FieldError, forbidden, invalidValue } from '../errors/api-error.js'
import { equalJson, isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { resourceErrors } from '../validation/container.js'
import { tolerationErrors } from '../validation/pod-spec.js'
import { labels, objectOf, objectsIn } from '../validation/rules.js'
import { describeKind, type KindDefinition } from './kind-definition.js'

/** RuntimeClasses: names of the ways in which nodes run pods. */
export const runtimeClassKind: KindDefinition = describeKind(RuntimeClasses, {
  createsOnUpdate: true,
  needsVersionOnUpdate: true,
  validate: (next, old) => [...runtimeClassErrors(next), ...(old ? handlerChangeErrors(next, old) : [])],
})

function runtimeClassErrors({ handler = '', overhead, scheduling }: JsonObject): FieldError[] {
  const problem = dns1123LabelError(String(handler))
  const { nodeSelector, tolerations } = objectOf(scheduling)
  return [
    ...(problem ? [invalidValue('handler', handler, problem)] : []),
    ...resourceErrors({ limits: objectOf(overhead).podFixed }, 'overhead'),
    ...labels('scheduling.nodeSelector', nodeSelector),
    ...objectsIn(tolerations).flatMap((each, index) =>
      tolerationErrors(each, `scheduling.tolerations.tolerations[${index}]`),
    ),
  ]
}

const handlerChangeErrors = (next: JsonObject, old: JsonObject): FieldError[] =>
  next.handler === old.handler ? [] : [invalidValue('handler', next.handler ?? '', 'field is immutable')]

/**
 * What Kubernetes' admission does with a new pod and the RuntimeClass it names: refuses a class that is not there, takes
 * over its overhead, and merges where it may be scheduled. Throws 403 in the words of the real server.
 */
export function admitRuntimeClass(pod: JsonObject, find: (name: string) => KubeObject | undefined): void {
  const spec = pod.spec
  if (!isJsonObject(spec)) return
  const refuse = (why: string): never => {
    throw forbidden(Pods, String(objectOf(pod.metadata).name ?? ''), why)
  }
  const name = spec.runtimeClassName
  const found = typeof name === 'string' ? (find(name) as JsonObject | undefined) : undefined
  if (typeof name === 'string' && !found) refuse(`pod rejected: RuntimeClass ${JSON.stringify(name)} not found`)
  const podFixed = isJsonObject(found?.overhead) ? objectOf(found.overhead.podFixed) : undefined
  if (podFixed) {
    const isSet = Object.keys(objectOf(spec.overhead)).length > 0
    if (isSet && !equalAmounts(objectOf(spec.overhead), podFixed))
      refuse("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    spec.overhead = { ...podFixed }
  } else if (isJsonObject(spec.overhead)) {
    refuse('pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead')
  }
  if (isJsonObject(found?.scheduling)) mergeScheduling(spec, found.scheduling, refuse)
}

function mergeScheduling(spec: JsonObject, scheduling: JsonObject, refuse: (why: string) => never): void {
  const selector = { ...objectOf(spec.nodeSelector) }
  for (const [key, value] of Object.entries(objectOf(scheduling.nodeSelector))) {
    if (Object.hasOwn(selector, key) && selector[key] !== value)
      refuse(
        `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${String(value)}; pod.spec.nodeSelector[${key}] = ${String(selector[key])}`,
      )
    selector[key] = value
  }
  if (Object.keys(selector).length > 0) spec.nodeSelector = selector
  const tolerations = mergeTolerations([...objectsIn(spec.tolerations), ...objectsIn(scheduling.tolerations)])
  if (tolerations.length > 0) spec.tolerations = tolerations
}

/** Of tolerations that tolerate the same, only the widest stays; of equal ones the first. */
function mergeTolerations(all: readonly JsonObject[]): JsonObject[] {
  const merged: JsonObject[] = []
  for (const [index, each] of all.entries()) {
    if (merged.some((other) => isWider(other, each))) continue
    if (all.slice(index + 1).some((other) => !equalJson(other, each) && isWider(other, each))) continue
    merged.push(each)
  }
  return merged
}

function isWider(wide: JsonObject, narrow: JsonObject): boolean {
  if (equalJson(wide, narrow)) return true
  const isAnyKey = !wide.key && wide.operator === 'Exists'
  if ((narrow.key ?? '') !== (wide.key ?? '') && !isAnyKey) return false
  if ((narrow.effect ?? '') !== (wide.effect ?? '') && wide.effect) return false
  if (wide.effect === 'NoExecute' && typeof wide.tolerationSeconds === 'number') {
    if (typeof narrow.tolerationSeconds !== 'number' || narrow.tolerationSeconds > wide.tolerationSeconds) return false
  }
  if (wide.operator === 'Exists') return true
  return narrow.operator === 'Equal' && (narrow.value ?? '') === (wide.value ?? '')
}

function equalAmounts(a: JsonObject, b: JsonObject): boolean {
  const canonical = (list: JsonObject): JsonObject =>
    Object.fromEntries(
      Object.entries(list).map(([name, amount]) => [name, canonicalQuantity(amount as string | number) ?? '']),
    )
  return equalJson(canonical(a), canonical(b))
}
