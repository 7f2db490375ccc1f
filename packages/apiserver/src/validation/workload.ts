import { type FieldError, forbiddenField, invalidValue, notSupported, required } from '../errors/api-error.js'
import { equalJson, isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { podSpecErrors } from './pod-spec.js'
import { nonNegative, objectOf, oneOf } from './rules.js'

/** What is wrong with a Deployment or ReplicaSet; `kind` is how messages call it. */
export function workloadErrors(next: JsonObject, old: JsonObject | undefined, kind: string): FieldError[] {
  const spec = objectOf(next.spec)
  if (old && equalJson(spec, objectOf(old.spec))) return []
  const { selector, template } = spec
  const { labels } = objectOf(objectOf(template).metadata)
  const errors: FieldError[] = [...nonNegative('spec.replicas', spec.replicas)]
  if (!isJsonObject(selector)) errors.push(required('spec.selector'))
  else if (isEmptySelector(selector))
    errors.push(invalidValue('spec.selector', {}, `empty selector is invalid for ${kind}`))
  if (!isJsonObject(selector) || !selects(selector, objectOf(labels))) {
    const why = '`selector` does not match template `labels`'
    errors.push(invalidValue('spec.template.metadata.labels', labels ?? null, why))
  }
  const inside = objectOf(objectOf(template).spec)
  errors.push(
    ...podSpecErrors(inside).map((error) => ({ ...error, field: error.field.replace(/^spec/, 'spec.template.spec') })),
  )
  if (inside.restartPolicy && inside.restartPolicy !== 'Always')
    errors.push(notSupported('spec.template.spec.restartPolicy', inside.restartPolicy, ['Always']))
  errors.push(...nonNegative('spec.minReadySeconds', spec.minReadySeconds), ...strategyErrors(objectOf(spec.strategy)))
  if (old && !equalJson(selector ?? null, objectOf(old.spec).selector ?? null))
    errors.push(invalidValue('spec.selector', selector, 'field is immutable'))
  return errors
}

const PERCENT_TEXT =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"

/** What is wrong with the spec of a PodDisruptionBudget. */
export function disruptionBudgetErrors(spec: JsonObject): FieldError[] {
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy } = spec
  const policies = ['AlwaysAllow', 'IfHealthyBudget']
  const errors: FieldError[] = []
  if (minAvailable !== undefined && maxUnavailable !== undefined) {
    const value = {
      MinAvailable: minAvailable,
      Selector: selector ?? null,
      MaxUnavailable: maxUnavailable,
      UnhealthyPodEvictionPolicy: unhealthyPodEvictionPolicy ?? null,
    }
    errors.push(invalidValue('spec', value, 'minAvailable and maxUnavailable cannot be both set'))
  }
  for (const [field, value] of Object.entries({ minAvailable, maxUnavailable })) {
    if (typeof value === 'string' && !/^[0-9]+%$/.test(value))
      errors.push(invalidValue(`spec.${field}`, value, PERCENT_TEXT))
    errors.push(...nonNegative(`spec.${field}`, value))
  }
  return [...errors, ...oneOf('spec.unhealthyPodEvictionPolicy', unhealthyPodEvictionPolicy, policies)]
}

const isEmptySelector = ({ matchLabels, matchExpressions }: JsonObject): boolean =>
  Object.keys(objectOf(matchLabels)).length === 0 && !(Array.isArray(matchExpressions) && matchExpressions.length > 0)

/** Labels only: what an expression selects is not looked at. */
function selects({ matchLabels }: JsonObject, labels: JsonObject): boolean {
  return Object.entries(objectOf(matchLabels)).every(([key, value]) => labels[key] === value)
}

function strategyErrors({ type, rollingUpdate }: JsonObject): FieldError[] {
  if (type === 'Recreate' && rollingUpdate)
    return [forbiddenField('spec.strategy.rollingUpdate', "may not be specified when strategy `type` is 'Recreate'")]
  if (type === undefined || type === 'Recreate' || type === 'RollingUpdate') return []
  return [
    notSupported('spec.strategy', { Type: type, RollingUpdate: rollingUpdate ?? null }, ['Recreate', 'RollingUpdate']),
  ]
}
