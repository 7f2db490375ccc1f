import { type FieldError, invalidValue, notSupported, requiredValue } from './field-error.js'
import type { JsonSchema } from './json-schema.js'
import { fieldAt } from './validate-crd-parts.js'

/** What is wrong with the `x-kubernetes-` keywords of one schema, apart from what its rules say. */
export function checkExtensions(schema: JsonSchema, path: string, errors: FieldError[]): void {
  if (schema['x-kubernetes-embedded-resource']) {
    if (schema.type !== 'object') {
      errors.push(
        invalidValue(`${path}.type`, schema.type ?? '', 'must be object if x-kubernetes-embedded-resource is true'),
      )
    }
    if (!schema['x-kubernetes-preserve-unknown-fields'] && !Object.keys(schema.properties ?? {}).length) {
      errors.push(
        requiredValue(
          `${path}.properties`,
          'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
        ),
      )
    }
  }
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    errors.push(invalidValue(`${path}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined'))
  }
  checkListType(schema, path, errors)
  checkRules(schema, path, errors)
  const mapType = schema['x-kubernetes-map-type']
  if (mapType !== undefined && !MAP_TYPES.includes(mapType)) {
    errors.push(notSupported(`${path}.x-kubernetes-map-type`, mapType, MAP_TYPES))
  } else if (mapType !== undefined && schema.type !== 'object') {
    errors.push(invalidValue(`${path}.type`, schema.type ?? '', 'must be object if x-kubernetes-map-type is specified'))
  }
}

const MAP_TYPES: readonly string[] = ['atomic', 'granular']
const REASONS = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired']

/** The rules of a schema apart from what they say, which their compiler looks at. */
function checkRules(schema: JsonSchema, path: string, errors: FieldError[]): void {
  for (const [i, { rule, reason, message, fieldPath }] of (schema['x-kubernetes-validations'] ?? []).entries()) {
    const at = `${path}.x-kubernetes-validations[${i}]`
    if (!rule?.trim()) errors.push(requiredValue(`${at}.rule`, 'rule is not specified'))
    if (message?.includes('\n')) errors.push(invalidValue(`${at}.message`, message, 'must not contain line breaks'))
    if (fieldPath !== undefined && !isFieldPath(schema, fieldPath))
      errors.push(invalidValue(`${at}.fieldPath`, fieldPath, 'must be a valid path'))
    if (reason !== undefined && !REASONS.includes(reason)) errors.push(notSupported(`${at}.reason`, reason, REASONS))
  }
}

/** Whether a path leads from the schema to a field of it; one that goes through the keys of a map is believed. */
function isFieldPath(schema: JsonSchema, path: string): boolean {
  return path.includes('[') || fieldAt(schema, path) !== undefined
}

const LIST_TYPES: readonly string[] = ['atomic', 'set', 'map']

function checkListType(schema: JsonSchema, path: string, errors: FieldError[]): void {
  const listType = schema['x-kubernetes-list-type']
  const keys = schema['x-kubernetes-list-map-keys']
  if (listType !== undefined && schema.type !== 'array') {
    errors.push(invalidValue(`${path}.type`, schema.type ?? '', 'must be array if x-kubernetes-list-type is specified'))
    return
  }
  if (listType !== undefined && !LIST_TYPES.includes(listType)) {
    errors.push(notSupported(`${path}.x-kubernetes-list-type`, listType, LIST_TYPES))
    return
  }
  if (listType === 'set' && schema.items?.type === 'object' && schema.items['x-kubernetes-map-type'] !== 'atomic') {
    const why = 'must be atomic as item of a list with x-kubernetes-list-type=set'
    const mapType = schema.items['x-kubernetes-map-type'] ?? null
    errors.push(invalidValue(`${path}.items.x-kubernetes-map-type`, mapType, why))
  }
  if (listType !== 'map') {
    const why = 'must be map if x-kubernetes-list-map-keys is non-empty'
    if (keys?.length) errors.push(requiredValue(`${path}.x-kubernetes-list-type`, why))
    return
  }
  if (!keys?.length) {
    errors.push(
      requiredValue(`${path}.x-kubernetes-list-map-keys`, 'must not be empty if x-kubernetes-list-type is map'),
    )
    return
  }
  const properties = schema.items?.properties ?? {}
  const at = `${path}.x-kubernetes-list-map-keys`
  if (new Set(keys).size < keys.length) errors.push(invalidValue(at, keys, 'must not contain duplicate entries'))
  for (const key of keys) {
    const property = properties[key]
    if (!property) errors.push(invalidValue(at, keys, 'entries must all be names of item properties'))
    else if (property.type === 'object' || property.type === 'array') {
      errors.push(
        invalidValue(
          `${path}.items.properties[${key}].type`,
          property.type,
          "must be a scalar type if parent array's x-kubernetes-list-type is map",
        ),
      )
    } else if (property.default === undefined && !schema.items?.required?.includes(key)) {
      errors.push(
        requiredValue(
          `${path}.items.properties[${key}].default`,
          'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
        ),
      )
    }
  }
}
