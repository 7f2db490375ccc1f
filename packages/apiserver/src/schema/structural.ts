import { compileSchema } from './compile.js'
import { type FieldError, forbidden, invalidValue, notSupported, requiredValue } from './field-error.js'
import { type JsonSchema, mapValueSchema } from './json-schema.js'
import { patternMatcher } from './pattern.js'

/** What stands where in the tree decides which rules apply. */
type Place = 'root' | 'field' | 'item' | 'value'

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string']

const NAMES: Record<Place, string> = {
  root: 'must not be empty at the root',
  field: 'must not be empty for specified object fields',
  item: 'must not be empty for specified array items',
  value: 'must not be empty for specified object fields',
}

/**
 * Whether a schema is structural: every node has a type, junctors carry value validations only. Returns what is wrong,
 * with paths below `path`. Patterns beyond the plain ones need `prepareSchema` first.
 */
export function checkStructural(schema: JsonSchema, path = 'openAPIV3Schema'): FieldError[] {
  const errors: FieldError[] = []
  checkNode(schema, path, 'root', errors)
  // Defaults are values of their schema, which makes sense to ask only of a schema that makes sense.
  if (errors.length === 0) checkDefaults(schema, path, errors)
  return errors
}

function checkDefaults(schema: JsonSchema, path: string, errors: FieldError[]): void {
  if (schema.default !== undefined) {
    const at = `${path}.default`
    const compiled = compileSchema(schema)
    if (compiled.prune(schema.default).unknownPaths.length > 0) {
      errors.push(invalidValue(at, schema.default, 'must not have unknown fields'))
    }
    for (const error of compiled.validate(compiled.applyDefaults(schema.default))) {
      errors.push({ ...error, field: error.field === '<nil>' ? at : `${at}.${error.field}` })
    }
  }
  for (const name in schema.properties) checkDefaults(schema.properties[name]!, `${path}.properties[${name}]`, errors)
  const values = mapValueSchema(schema)
  if (values) checkDefaults(values, `${path}.additionalProperties`, errors)
  if (schema.items) checkDefaults(schema.items, `${path}.items`, errors)
}

function checkNode(schema: JsonSchema, path: string, place: Place, errors: FieldError[]): void {
  checkType(schema, path, place, errors)
  checkExtensions(schema, path, errors)
  checkKeywords(schema, path, errors)
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    checkNode(child, `${path}.properties[${name}]`, 'field', errors)
  }
  const values = mapValueSchema(schema)
  if (values) {
    if (place === 'root') errors.push(forbidden(`${path}.additionalProperties`, 'must not be used at the root'))
    checkNode(values, `${path}.additionalProperties`, 'value', errors)
  }
  if (schema.items) checkNode(schema.items, `${path}.items`, 'item', errors)
  else if (schema.type === 'array') errors.push(requiredValue(`${path}.items`, 'must be specified'))
  checkJunctors(schema, path, errors)
}

function checkType(schema: JsonSchema, path: string, place: Place, errors: FieldError[]): void {
  const isOpen = schema['x-kubernetes-int-or-string'] || schema['x-kubernetes-preserve-unknown-fields']
  if (!schema.type && (place === 'root' || !isOpen)) errors.push(requiredValue(`${path}.type`, NAMES[place]))
  if (place === 'root' && schema.type && schema.type !== 'object') {
    errors.push(invalidValue(`${path}.type`, schema.type, 'must be object at the root'))
  }
  if (schema.type && !TYPES.includes(schema.type)) errors.push(notSupported(`${path}.type`, schema.type, TYPES))
  if (schema.properties && schema.additionalProperties) {
    errors.push(forbidden(`${path}.additionalProperties`, 'additionalProperties and properties are mutual exclusive'))
  }
}

function checkExtensions(schema: JsonSchema, path: string, errors: FieldError[]): void {
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
  if (mapType !== undefined && schema.type !== 'object') {
    errors.push(invalidValue(`${path}.type`, schema.type ?? '', 'must be object if x-kubernetes-map-type is specified'))
  }
}

const REASONS = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired']

/** The rules of a schema apart from what they say, which their compiler looks at. */
function checkRules(schema: JsonSchema, path: string, errors: FieldError[]): void {
  for (const [i, { rule, reason }] of (schema['x-kubernetes-validations'] ?? []).entries()) {
    const at = `${path}.x-kubernetes-validations[${i}]`
    if (!rule?.trim()) errors.push(requiredValue(`${at}.rule`, 'rule is not specified'))
    if (reason !== undefined && !REASONS.includes(reason)) errors.push(notSupported(`${at}.reason`, reason, REASONS))
  }
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
    if (keys)
      errors.push(
        forbidden(`${path}.x-kubernetes-list-map-keys`, 'may only be used when x-kubernetes-list-type is map'),
      )
    return
  }
  if (!keys?.length) {
    errors.push(
      requiredValue(`${path}.x-kubernetes-list-map-keys`, 'must not be empty if x-kubernetes-list-type is map'),
    )
    return
  }
  const properties = schema.items?.properties ?? {}
  for (const [i, key] of keys.entries()) {
    const property = properties[key]
    const at = `${path}.x-kubernetes-list-map-keys[${i}]`
    if (!property) errors.push(invalidValue(at, key, 'entries must all be names of item properties'))
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

function checkKeywords(schema: JsonSchema, path: string, errors: FieldError[]): void {
  if (schema.$ref !== undefined) errors.push(forbidden(`${path}.$ref`, '$ref is not supported'))
  if (schema.uniqueItems === true)
    errors.push(
      forbidden(
        `${path}.uniqueItems`,
        'uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
      ),
    )
  if (schema.additionalProperties === false) {
    errors.push(forbidden(`${path}.additionalProperties`, 'additionalProperties cannot be set to false'))
  }
  if (schema.pattern === undefined) return
  try {
    patternMatcher(schema.pattern)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    errors.push(
      invalidValue(`${path}.pattern`, schema.pattern, `must be a valid regular expression, but isn't: ${reason}`),
    )
  }
}

/** Keywords that describe structure and therefore may not stand inside a junctor. */
const STRUCTURE = [
  'title',
  'description',
  'default',
  'additionalProperties',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-validations',
] as const

function checkJunctors(schema: JsonSchema, path: string, errors: FieldError[]): void {
  const allowsTypes = schema['x-kubernetes-int-or-string'] === true
  for (const name of ['anyOf', 'oneOf', 'allOf'] as const) {
    for (const [i, part] of (schema[name] ?? []).entries()) {
      checkJunctor(part, schema, `${path}.${name}[${i}]`, allowsTypes, errors)
    }
  }
  if (schema.not) checkJunctor(schema.not, schema, `${path}.not`, false, errors)
}

function checkJunctor(
  part: JsonSchema,
  owner: JsonSchema | undefined,
  path: string,
  allowsTypes: boolean,
  errors: FieldError[],
): void {
  if (part.type && !allowsTypes) errors.push(forbidden(`${path}.type`, 'must be empty to be structural'))
  if (part.nullable) errors.push(forbidden(`${path}.nullable`, 'must be false to be structural'))
  for (const keyword of STRUCTURE) {
    if (part[keyword] !== undefined) errors.push(forbidden(`${path}.${keyword}`, 'must be undefined to be structural'))
  }
  for (const [name, child] of Object.entries(part.properties ?? {})) {
    const at = `${path}.properties[${name}]`
    const counterpart = owner?.properties?.[name]
    if (!counterpart && !owner?.['x-kubernetes-preserve-unknown-fields']) {
      errors.push(requiredValue(`properties[${name}]`, `because it is defined in ${at}`))
    }
    checkJunctor(child, counterpart, at, false, errors)
  }
  if (part.items) checkJunctor(part.items, owner?.items, `${path}.items`, false, errors)
  for (const name of ['anyOf', 'oneOf', 'allOf'] as const) {
    for (const [i, nested] of (part[name] ?? []).entries()) {
      checkJunctor(nested, owner, `${path}.${name}[${i}]`, allowsTypes, errors)
    }
  }
  if (part.not) checkJunctor(part.not, owner, `${path}.not`, false, errors)
}
