import { type FieldError, forbiddenField, invalidValue } from '../errors/api-error.js'
import { equalJson, type JsonObject } from '../objects/plain-json.js'
import { objectOf, objectsIn } from './rules.js'

const CHANGE_TEXT =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'

/** What is wrong with the change of a pod's spec: hardly anything of it may change, and most of that in one direction. */
export function podChangeErrors(next: JsonObject, old: JsonObject): FieldError[] {
  for (const list of ['containers', 'initContainers']) {
    if (objectsIn(next[list]).length !== objectsIn(old[list]).length)
      return [forbiddenField(`spec.${list}`, 'pod updates may not add or remove containers')]
  }
  const errors = [
    ...deadlineErrors(next.activeDeadlineSeconds, old.activeDeadlineSeconds),
    ...tolerationErrors(next, old),
    ...gateErrors(next, old),
    ...selectorErrors(next, old),
  ]
  if (errors.length > 0 || equalJson(frozenPart(next, old), frozenPart(old, old))) return errors
  return [forbiddenField('spec', CHANGE_TEXT)]
}

function deadlineErrors(next: unknown, old: unknown): FieldError[] {
  if (typeof old !== 'number') return []
  const field = 'spec.activeDeadlineSeconds'
  if (typeof next !== 'number')
    return [invalidValue(field, null, 'must not update from a positive integer to nil value')]
  return next > old ? [invalidValue(field, next, 'must be less than or equal to previous value')] : []
}

function tolerationErrors(next: JsonObject, old: JsonObject): FieldError[] {
  const kept = objectsIn(next.tolerations).map(withoutSeconds)
  if (objectsIn(old.tolerations).every((each) => kept.some((other) => equalJson(other, withoutSeconds(each)))))
    return []
  return [forbiddenField('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')]
}

const withoutSeconds = ({ tolerationSeconds: _seconds, ...rest }: JsonObject): JsonObject => rest

function gateErrors(next: JsonObject, old: JsonObject): FieldError[] {
  const known = objectsIn(old.schedulingGates).map(({ name }) => name)
  return objectsIn(next.schedulingGates).flatMap(({ name }, index) => {
    if (known.includes(name)) return []
    const why = `only deletion is allowed, but found new scheduling gate '${String(name)}'`
    return [forbiddenField(`spec.schedulingGates[${index}].name`, why)]
  })
}

const isGated = (spec: JsonObject): boolean => objectsIn(spec.schedulingGates).length > 0

function selectorErrors(next: JsonObject, old: JsonObject): FieldError[] {
  if (!isGated(old)) return []
  const wanted = objectOf(next.nodeSelector)
  if (Object.entries(objectOf(old.nodeSelector)).every(([key, value]) => wanted[key] === value)) return []
  const why = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)'
  return [invalidValue('spec.nodeSelector', wanted, why)]
}

/**
 * The spec without what has rules of its own: images, deadline, tolerations and gates; of a pod that a gate holds back
 * also what narrows down its node.
 */
function frozenPart(spec: JsonObject, old: JsonObject): JsonObject {
  const { activeDeadlineSeconds: _deadline, tolerations: _tolerations, schedulingGates: _gates, ...rest } = spec
  const strip = (list: unknown): JsonObject[] => objectsIn(list).map(({ image: _image, ...container }) => container)
  const frozen = { ...rest, containers: strip(spec.containers), initContainers: strip(spec.initContainers) }
  if (!isGated(old)) return frozen
  const { nodeSelector: _selector, affinity, ...others } = frozen as JsonObject
  if (objectOf(old.affinity).nodeAffinity !== undefined) return { ...others, affinity }
  const { nodeAffinity: _first, ...affinities } = objectOf(affinity)
  return { ...others, affinities }
}
