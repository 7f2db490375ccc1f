import { type FieldError, invalidValue, notSupported, required } from '../errors/api-error.js'
import { equalJson, type JsonObject } from '../objects/plain-json.js'
import { objectOf, objectsIn } from './rules.js'

const RBAC = 'rbac.authorization.k8s.io'
const isEmpty = (value: unknown): boolean => !Array.isArray(value) || value.length === 0

/** What is wrong with the rules of a Role, or of a ClusterRole, which may also name paths. */
export function roleErrors({ rules }: JsonObject, isNamespaced: boolean): FieldError[] {
  return objectsIn(rules).flatMap(({ verbs, apiGroups, resources, nonResourceURLs }, index) => {
    const path = `rules[${index}]`
    const errors: FieldError[] = []
    if (isEmpty(verbs)) errors.push(required(`${path}.verbs`, 'verbs must contain at least one value'))
    if (!isEmpty(nonResourceURLs)) {
      const field = `${path}.nonResourceURLs`
      if (isNamespaced)
        errors.push(invalidValue(field, nonResourceURLs, 'namespaced rules cannot apply to non-resource URLs'))
      if (!isEmpty(apiGroups) || !isEmpty(resources)) {
        const why = 'rules cannot apply to both regular resources and non-resource URLs'
        errors.push(invalidValue(field, nonResourceURLs, why))
      }
      return errors
    }
    if (isEmpty(apiGroups))
      errors.push(required(`${path}.apiGroups`, 'resource rules must supply at least one api group'))
    if (isEmpty(resources))
      errors.push(required(`${path}.resources`, 'resource rules must supply at least one resource'))
    return errors
  })
}

/** What is wrong with who is bound to what; what a binding refers to never changes. */
export function bindingErrors(next: JsonObject, old: JsonObject | undefined, isNamespaced: boolean): FieldError[] {
  const { apiGroup, kind, name } = objectOf(next.roleRef)
  const errors: FieldError[] = []
  if (apiGroup !== RBAC) errors.push(notSupported('roleRef.apiGroup', apiGroup ?? '', [RBAC]))
  const kinds = isNamespaced ? ['Role', 'ClusterRole'] : ['ClusterRole']
  if (!kinds.includes(String(kind))) errors.push(notSupported('roleRef.kind', kind ?? '', kinds))
  if (!name) errors.push(required('roleRef.name'))
  errors.push(
    ...objectsIn(next.subjects).flatMap((subject, index) => subjectErrors(subject, isNamespaced, `subjects[${index}]`)),
  )
  if (old && !equalJson(objectOf(old.roleRef), objectOf(next.roleRef))) {
    const value = { APIGroup: apiGroup, Kind: kind, Name: name }
    errors.push(invalidValue('roleRef', value, 'cannot change roleRef'))
  }
  return errors
}

function subjectErrors(
  { kind, name, apiGroup, namespace }: JsonObject,
  isNamespaced: boolean,
  path: string,
): FieldError[] {
  const errors: FieldError[] = name ? [] : [required(`${path}.name`)]
  if (kind === 'ServiceAccount') {
    if (apiGroup) errors.push(notSupported(`${path}.apiGroup`, apiGroup, ['']))
    if (!isNamespaced && !namespace) errors.push(required(`${path}.namespace`))
  } else if (kind === 'User' || kind === 'Group') {
    if (apiGroup !== RBAC) errors.push(notSupported(`${path}.apiGroup`, apiGroup ?? '', [RBAC]))
  } else errors.push(notSupported(`${path}.kind`, kind ?? '', ['ServiceAccount', 'User', 'Group']))
  return errors
}

/** What is wrong with a question about access. */
export function accessReviewErrors(spec: JsonObject, isAboutSelf: boolean): FieldError[] {
  const { resourceAttributes, nonResourceAttributes, user, groups } = spec
  const errors: FieldError[] = []
  if (resourceAttributes && nonResourceAttributes) {
    const { path = '', verb = '' } = objectOf(nonResourceAttributes)
    const why = 'cannot be specified in combination with resourceAttributes'
    errors.push(invalidValue('spec.nonResourceAttributes', { Path: path, Verb: verb }, why))
  }
  if (!resourceAttributes && !nonResourceAttributes) {
    const why = 'exactly one of nonResourceAttributes or resourceAttributes must be specified'
    errors.push(invalidValue('spec.resourceAttributes', null, why))
  }
  if (!isAboutSelf && !user && isEmpty(groups))
    errors.push(invalidValue('spec.user', '', 'at least one of user or group must be specified'))
  return errors
}
