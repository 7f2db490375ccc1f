import { dns1035LabelError, dns1123LabelError, dns1123SubdomainError, labelValueError } from '@corral/resources'
import { type FieldError, invalidValue } from '../errors/api-error.js'
import type { KindDefinition } from './kind-definition.js'

const RULES = { subdomain: dns1123SubdomainError, label: dns1123LabelError, label1035: dns1035LabelError } as const

/** What is wrong with an object's name under its kind's rule. */
export function checkName(kind: KindDefinition, name: string): FieldError[] {
  const problem = kind.nameRule === 'path' ? pathSegmentError(name) : RULES[kind.nameRule](name)
  return problem ? [invalidValue('metadata.name', name, problem)] : []
}

function pathSegmentError(name: string): string | undefined {
  if (name === '.' || name === '..') return `may not be '${name}'`
  const bad = ['/', '%'].find((part) => name.includes(part))
  return bad && `may not contain '${bad}'`
}

const ANNOTATION_LIMIT_BYTES = 262_144

/** What is wrong with labels, annotations and finalizers. */
export function checkMetadata(metadata: {
  labels?: unknown
  annotations?: unknown
  finalizers?: unknown
  ownerReferences?: unknown
}): FieldError[] {
  const errors: FieldError[] = []
  for (const [key, value] of entries(metadata.labels)) {
    errors.push(...checkQualifiedName(key, 'metadata.labels'))
    const problem = labelValueError(String(value))
    if (problem) errors.push(invalidValue('metadata.labels', value, problem))
  }
  let annotationBytes = 0
  for (const [key, value] of entries(metadata.annotations)) {
    errors.push(...checkQualifiedName(key.toLowerCase(), 'metadata.annotations'))
    annotationBytes += Buffer.byteLength(key) + Buffer.byteLength(String(value))
  }
  if (annotationBytes > ANNOTATION_LIMIT_BYTES) {
    errors.push({
      reason: 'FieldValueTooLong',
      field: 'metadata.annotations',
      message: `Too long: may not be more than ${ANNOTATION_LIMIT_BYTES} bytes`,
    })
  }
  if (Array.isArray(metadata.finalizers)) {
    for (const finalizer of metadata.finalizers) {
      errors.push(...checkQualifiedName(String(finalizer), 'metadata.finalizers'))
    }
  }
  if (Array.isArray(metadata.ownerReferences)) errors.push(...checkOwners(metadata.ownerReferences))
  return errors
}

function checkOwners(owners: readonly unknown[]): FieldError[] {
  const errors: FieldError[] = []
  const controllers: Record<string, unknown>[] = []
  for (const owner of owners) {
    const fields = Object.fromEntries(entries(owner))
    if (!fields.apiVersion)
      errors.push(invalidValue('metadata.ownerReferences.apiVersion', '', 'version must not be empty'))
    for (const field of ['kind', 'name', 'uid'])
      if (!fields[field]) errors.push(invalidValue(`metadata.ownerReferences.${field}`, '', 'must not be empty'))
    if (fields.controller === true) controllers.push(fields)
  }
  const [first, second] = controllers.map(({ kind, name }) => `${String(kind)}/${String(name)}`)
  if (second === undefined) return errors
  const why = `Only one reference can have Controller set to true. Found "true" in references for ${first} and ${second}`
  return [...errors, invalidValue('metadata.ownerReferences', owners, why)]
}

function entries(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : []
}

const NAME_PART = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
const NAME_PART_TEXT =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

function checkQualifiedName(key: string, field: string): FieldError[] {
  const slash = key.indexOf('/')
  const name = key.slice(slash + 1)
  const prefixProblem = slash < 0 ? undefined : dns1123SubdomainError(key.slice(0, slash))
  if (prefixProblem) return [invalidValue(field, key, `prefix part ${prefixProblem}`)]
  if (name === '') return [invalidValue(field, key, 'name part must be non-empty')]
  if (name.length > 63) return [invalidValue(field, key, 'name part must be no more than 63 bytes')]
  return NAME_PART.test(name) ? [] : [invalidValue(field, key, NAME_PART_TEXT)]
}
