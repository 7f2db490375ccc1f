import { duplicateValue, type FieldError, invalidValue, requiredValue, tooMany } from './field-error.js'
import type { JsonSchema } from './json-schema.js'
import { isRecord, type JsonRecord } from './json-value.js'

const MAX_FIELDS = 8
const TYPES = ['string', 'boolean', 'integer']
const TYPE_TEXT =
  'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.'

/** What is wrong with the fields by which objects of a version may be selected; `path` is where the version is named. */
export function checkSelectableFields(version: JsonRecord, path: string, errors: FieldError[]): void {
  const fields = Array.isArray(version.selectableFields) ? version.selectableFields.filter(isRecord) : []
  const schema = isRecord(version.schema) ? (version.schema.openAPIV3Schema as JsonSchema | undefined) : undefined
  const seen = new Set<string>()
  for (const [i, { jsonPath }] of fields.entries()) {
    const at = `${path}.selectableFields[${i}].jsonPath`
    if (!jsonPath) {
      errors.push(requiredValue(at))
      continue
    }
    const text = String(jsonPath)
    errors.push(...problems(text, schema ?? {}).map((problem) => invalidValue(at, text, problem)))
    if (seen.has(text)) errors.push(duplicateValue(at, text))
    seen.add(text)
  }
  if (seen.size > MAX_FIELDS) errors.push(tooMany(`${path}.selectableFields`, seen.size, MAX_FIELDS))
}

function problems(path: string, schema: JsonSchema): string[] {
  const found = fieldOf(path, schema)
  if (typeof found === 'string') return [`is an invalid path: ${found}`]
  if (path.startsWith('.metadata.')) return ['must not point to fields in metadata']
  return TYPES.includes(String(found.type)) ? [] : [TYPE_TEXT]
}

/** The schema of the field a path leads to, through objects and maps; or why it leads nowhere. */
function fieldOf(path: string, schema: JsonSchema): JsonSchema | string {
  if (path.includes('[')) return 'array notation is not allowed'
  if (!path.startsWith('.')) return `expected [ or . but got: ${/^(?:[\w-]+|.)/.exec(path)?.[0]}`
  if (path.endsWith('.')) return 'unexpected end of JSON path'
  const found = path.slice(1).split('.').reduce<JsonSchema | undefined>(memberOf, schema)
  return found ?? 'does not refer to a valid field'
}

function memberOf(schema: JsonSchema | undefined, name: string): JsonSchema | undefined {
  const { properties = {}, additionalProperties } = schema ?? {}
  if (Object.hasOwn(properties, name)) return properties[name]
  return typeof additionalProperties === 'object' ? additionalProperties : undefined
}
