import { checkExtensions } from './check-extensions.js'
import { compileSchema } from './compile.js'
import { type FieldError, forbidden, invalidValue, notSupported, requiredValue } from './field-error.js'
import { type JsonSchema, mapValueSchema } from './json-schema.js'
import { isRecord } from './json-value.js'
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
  checkRoot(schema, path, errors)
  // Defaults are values of their schema, which makes sense to ask only of a schema that makes sense.
  if (errors.length === 0) checkDefaults(schema, path, errors)
  return errors
}

const ROOT_TYPES = { apiVersion: 'string', kind: 'string', metadata: 'object' } as const

/** What every object has is of one type; it cannot be null, and a default of all of it would lack its identity. */
function checkRoot(schema: JsonSchema, path: string, errors: FieldError[]): void {
  if (schema.nullable) errors.push(forbidden(`${path}.nullable`, 'nullable cannot be true at the root'))
  for (const [name, wanted] of Object.entries(ROOT_TYPES)) {
    const type = schema.properties?.[name]?.type
    if (type && type !== wanted)
      errors.push(invalidValue(`${path}.properties[${name}].type`, type, `must be ${wanted}`))
  }
  if (!isRecord(schema.default)) return
  for (const name of ['apiVersion', 'kind'])
    if (!schema.default[name]) errors.push(requiredValue(`${path}.default.${name}`))
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
  if (Array.isArray(schema.items))
    errors.push(forbidden(`${path}.items`, 'items must be a schema object and not an array'))
  else if (schema.items) checkNode(schema.items, `${path}.items`, 'item', errors)
  else if (schema.type === 'array') errors.push(requiredValue(`${path}.items`, 'must be specified'))
  checkJunctors(schema, path, place, errors)
}

function checkType(schema: JsonSchema, path: string, place: Place, errors: FieldError[]): void {
  if (schema.$ref !== undefined) return // refused for that
  const isOpen = schema['x-kubernetes-int-or-string'] || schema['x-kubernetes-preserve-unknown-fields']
  if (!schema.type && (place === 'root' || !isOpen)) errors.push(requiredValue(`${path}.type`, NAMES[place]))
  if (place === 'root' && schema.type && schema.type !== 'object') {
    errors.push(invalidValue(`${path}.type`, schema.type, 'must be object at the root'))
  }
  if (schema.type && !TYPES.includes(schema.type)) errors.push(notSupported(`${path}.type`, schema.type, TYPES))
  if (schema.properties && mapValueSchema(schema)) {
    errors.push(forbidden(`${path}.additionalProperties`, 'additionalProperties and properties are mutual exclusive'))
  }
}

/** Keywords of JSON Schema that a definition may not use. */
const UNSUPPORTED = ['id', 'definitions', 'dependencies', 'patternProperties']

function checkKeywords(schema: JsonSchema, path: string, errors: FieldError[]): void {
  if (schema.$ref !== undefined) errors.push(forbidden(`${path}.$ref`, '$ref is not supported'))
  if (schema.uniqueItems === true)
    errors.push(
      forbidden(
        `${path}.uniqueItems`,
        'uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
      ),
    )
  for (const keyword of UNSUPPORTED)
    if (keyword in schema) errors.push(forbidden(`${path}.${keyword}`, `${keyword} is not supported`))
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

/** The schema that a part of a junctor adds to; below the root its presence does not matter. */
type Owner = JsonSchema | 'any' | undefined

function checkJunctors(schema: JsonSchema, path: string, place: Place, errors: FieldError[]): void {
  const owner = place === 'root' ? schema : 'any'
  const isEither = schema.anyOf?.map(({ type }) => type).join() === 'integer,string'
  const allowsTypes = schema['x-kubernetes-int-or-string'] === true || isEither
  for (const name of ['anyOf', 'oneOf', 'allOf'] as const) {
    for (const [i, part] of (schema[name] ?? []).entries()) {
      checkJunctor(part, owner, `${path}.${name}[${i}]`, allowsTypes, errors)
    }
  }
  if (schema.not) checkJunctor(schema.not, owner, `${path}.not`, false, errors)
}

function checkJunctor(part: JsonSchema, owner: Owner, path: string, allowsTypes: boolean, errors: FieldError[]): void {
  if (part.type && !allowsTypes) errors.push(forbidden(`${path}.type`, 'must be empty to be structural'))
  if (part.nullable) errors.push(forbidden(`${path}.nullable`, 'must be false to be structural'))
  for (const keyword of STRUCTURE) {
    const wanted = keyword === 'title' || keyword === 'description' ? 'empty' : 'undefined'
    if (part[keyword] !== undefined) errors.push(forbidden(`${path}.${keyword}`, `must be ${wanted} to be structural`))
  }
  for (const [name, child] of Object.entries(part.properties ?? {})) {
    const at = `${path}.properties[${name}]`
    const counterpart = owner === 'any' ? owner : owner?.properties?.[name]
    if (!counterpart && !(owner as JsonSchema | undefined)?.['x-kubernetes-preserve-unknown-fields']) {
      errors.push(requiredValue(`properties[${name}]`, `because it is defined in ${at}`))
    }
    checkJunctor(child, counterpart, at, false, errors)
  }
  if (part.items) checkJunctor(part.items, owner === 'any' ? owner : owner?.items, `${path}.items`, false, errors)
  for (const name of ['anyOf', 'oneOf', 'allOf'] as const) {
    for (const [i, nested] of (part[name] ?? []).entries()) {
      checkJunctor(nested, owner, `${path}.${name}[${i}]`, allowsTypes, errors)
    }
  }
  if (part.not) checkJunctor(part.not, owner, `${path}.not`, false, errors)
}
