import { type FieldError, invalidValue } from '../errors/api-error.js'
import type { KindDefinition } from './kind-definition.js'

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const LABEL_1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const QUALIFIED_NAME = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/

const SUBDOMAIN_TEXT =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
const LABEL_TEXT =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
const LABEL_1035_TEXT =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"

const RULES = {
  subdomain: { pattern: SUBDOMAIN, text: SUBDOMAIN_TEXT, max: 253 },
  label: { pattern: LABEL, text: LABEL_TEXT, max: 63 },
  label1035: { pattern: LABEL_1035, text: LABEL_1035_TEXT, max: 63 },
} as const

/** What is wrong with an object's name under its kind's rule. */
export function checkName(kind: KindDefinition, name: string): FieldError[] {
  if (kind.nameRule === 'path') {
    if (name === '.' || name === '..') return [invalidValue('metadata.name', name, `may not be '${name}'`)]
    const bad = ['/', '%'].find((part) => name.includes(part))
    return bad ? [invalidValue('metadata.name', name, `may not contain '${bad}'`)] : []
  }
  const rule = RULES[kind.nameRule]
  const errors: FieldError[] = []
  const max = Math.min(rule.max, kind.maxNameLength)
  if (name.length > max) errors.push(invalidValue('metadata.name', name, `must be no more than ${max} characters`))
  if (!rule.pattern.test(name)) errors.push(invalidValue('metadata.name', name, rule.text))
  return errors
}

const ANNOTATION_LIMIT_BYTES = 262_144

/** What is wrong with labels, annotations and finalizers. */
export function checkMetadata(metadata: {
  labels?: unknown
  annotations?: unknown
  finalizers?: unknown
}): FieldError[] {
  const errors: FieldError[] = []
  for (const [key, value] of entries(metadata.labels)) {
    errors.push(...checkQualifiedName(key, 'metadata.labels'))
    if (typeof value !== 'string' || value.length > 63 || (value !== '' && !QUALIFIED_NAME.test(value))) {
      errors.push(
        invalidValue(
          'metadata.labels',
          value,
          typeof value === 'string' && value.length > 63
            ? 'must be no more than 63 bytes'
            : "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
      )
    }
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
  return errors
}

function entries(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : []
}

function checkQualifiedName(key: string, field: string): FieldError[] {
  const slash = key.indexOf('/')
  const prefix = slash < 0 ? undefined : key.slice(0, slash)
  const name = key.slice(slash + 1)
  const text =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
  if (prefix !== undefined && (prefix.length > 253 || !SUBDOMAIN.test(prefix))) {
    return [invalidValue(field, key, `prefix part ${SUBDOMAIN_TEXT}`)]
  }
  if (name === '') return [invalidValue(field, key, 'name part must be non-empty')]
  if (name.length > 63) return [invalidValue(field, key, 'name part must be no more than 63 bytes')]
  return QUALIFIED_NAME.test(name) ? [] : [invalidValue(field, key, text)]
}
