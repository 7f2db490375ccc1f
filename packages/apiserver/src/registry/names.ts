import { dns1035LabelError, dns1123LabelError, dns1123SubdomainError, labelValueError } from '@corral/resources'
import { type FieldError, invalidValue } from '../errors/api-error.js'
import { checkQualifiedName } from '../validation/qualified-name.js'
import type { KindDefinition } from './kind-definition.js'

const RULES = { subdomain: dns1123SubdomainError, label: dns1123LabelError, label1035: dns1035LabelError } as const

/** What is wrong with an object's name under its kind's rule. */
export function checkName(kind: KindDefinition, name: string): FieldError[] {
  if (kind.nameRule === 'label' && name.includes('.'))
    return [invalidValue('metadata.name', name, 'must not contain dots')]
  const problem = kind.nameRule === 'path' ? pathSegmentError(name) : RULES[kind.nameRule](name)
  return problem ? [invalidValue('metadata.name', name, problem)] : []
}

/** What is wrong with the beginning of a name that the server is to complete. It may end in a dash. */
export function checkGenerateName(kind: KindDefinition, base: string): FieldError[] {
  const completed = base.length > 1 && base.endsWith('-') ? `${base.slice(0, -2)}a` : base
  return checkName(kind, completed).map(({ reason, message }) => ({
    reason,
    field: 'metadata.generateName',
    message: message.replace(JSON.stringify(completed), JSON.stringify(base)),
  }))
}

function pathSegmentError(name: string): string | undefined {
  if (name === '.' || name === '..') return `may not be '${name}'`
  const bad = ['/', '%'].find((part) => name.includes(part))
  return bad && `may not contain '${bad}'`
}

const ANNOTATION_LIMIT_BYTES = 262_144

interface Metadata {
  labels?: unknown
  annotations?: unknown
  finalizers?: unknown
  ownerReferences?: unknown
}

/** What is wrong with labels, annotations, finalizers and owners; what is the very same as before was looked at then. */
export function checkMetadata(kind: KindDefinition, metadata: Metadata, before: Metadata = {}): FieldError[] {
  const errors: FieldError[] = []
  if (metadata.labels !== before.labels) errors.push(...checkLabels(metadata.labels))
  if (metadata.annotations !== before.annotations) errors.push(...checkAnnotations(metadata.annotations))
  const { finalizers, ownerReferences } = metadata
  if (Array.isArray(finalizers) && finalizers !== before.finalizers) errors.push(...checkFinalizers(kind, finalizers))
  if (Array.isArray(ownerReferences) && ownerReferences !== before.ownerReferences)
    errors.push(...checkOwners(ownerReferences))
  return errors
}

function checkLabels(labels: unknown): FieldError[] {
  const errors: FieldError[] = []
  for (const [key, value] of entries(labels)) {
    errors.push(...checkQualifiedName(key, 'metadata.labels'))
    const problem = labelValueError(String(value))
    if (problem) errors.push(invalidValue('metadata.labels', value, problem))
  }
  return errors
}

function checkAnnotations(annotations: unknown): FieldError[] {
  const errors: FieldError[] = []
  let annotationBytes = 0
  for (const [key, value] of entries(annotations)) {
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
  return errors
}

const STANDARD_FINALIZERS = ['kubernetes', 'orphan', 'foregroundDeletion']
/** Built-in kinds whose finalizers need no domain. */
const LENIENT = /^(leases|customresourcedefinitions|.*webhookconfigurations)\./

function checkFinalizers(kind: KindDefinition, finalizers: readonly unknown[]): FieldError[] {
  const errors = finalizers.flatMap((finalizer) => checkQualifiedName(String(finalizer), 'metadata.finalizers'))
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    const why = 'finalizer orphan and foregroundDeletion cannot be both set'
    errors.push(invalidValue('metadata.finalizers', finalizers, why))
  }
  if (kind.isCustom || LENIENT.test(kind.collection)) return errors
  for (const [index, finalizer] of finalizers.entries()) {
    if (isQualified(finalizer)) continue
    const why = 'name is neither a standard finalizer name nor is it fully qualified'
    errors.push(invalidValue(`metadata.finalizers[${index}]`, finalizer, why))
  }
  return errors
}

const isQualified = (finalizer: unknown): boolean =>
  String(finalizer).includes('/') || STANDARD_FINALIZERS.includes(String(finalizer))

/** What is said about a custom object's finalizers that built-in kinds may not have. */
export function finalizerWarnings({ finalizers }: Metadata): string[] {
  if (!Array.isArray(finalizers)) return []
  return finalizers.map(String).flatMap((finalizer) => {
    if (isQualified(finalizer)) return []
    const path = finalizer.includes('.') ? ' including a path (/)' : ''
    const advice = `prefer a domain-qualified finalizer name${path} to avoid accidental conflicts with other finalizer writers`
    return [`metadata.finalizers: ${JSON.stringify(finalizer)}: ${advice}`]
  })
}

function checkOwners(owners: readonly unknown[]): FieldError[] {
  const errors: FieldError[] = []
  const controllers: Record<string, unknown>[] = []
  for (const owner of owners) {
    const fields = Object.fromEntries(entries(owner))
    const apiVersion = String(fields.apiVersion ?? '')
    if (!/^([^/]*\/)?[^/]+$/.test(apiVersion))
      errors.push(invalidValue('metadata.ownerReferences.apiVersion', apiVersion, 'version must not be empty'))
    for (const field of ['kind', 'name', 'uid'])
      if (!fields[field]) errors.push(invalidValue(`metadata.ownerReferences.${field}`, '', 'must not be empty'))
    if (apiVersion === 'v1' && fields.kind === 'Event')
      errors.push(invalidValue('metadata.ownerReferences', owner, '/v1, Kind=Event is disallowed from being an owner'))
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
