import { type FieldInfo, type FieldType, fieldTable, type ScalarType, type TypeInfo } from './field-table.js'
import { parseQuantity } from './quantity.js'
import { isTime } from './time.js'

/** One violation found in a value; `path` leads from the value to the offending member. */
export interface ValueIssue {
  path: (string | number)[]
  message: string
}

export interface ValidateOptions {
  /** Report members the type does not have. Off by default: servers prune them, and newer servers know more. */
  unknownFields?: boolean
}

/**
 * Violations of `value` against a Kubernetes type named as in OpenAPI: wrong JSON types, missing members, out-of-range
 * numbers, malformed quantities and times, duplicate list-map keys. Empty means valid.
 */
export function validateKubernetesValue(typeName: string, value: unknown, options: ValidateOptions = {}): ValueIssue[] {
  const issues: ValueIssue[] = []
  checkObject(fieldTable.type(typeName), value, [], options, issues)
  return issues
}

type Path = readonly (string | number)[]

function checkObject(type: TypeInfo, value: unknown, path: Path, options: ValidateOptions, issues: ValueIssue[]): void {
  if (!isRecord(value)) {
    // An either-or type takes several JSON forms; its members exist in protobuf only.
    if (!type.either) report(issues, path, `must be an object, not ${jsonType(value)}`)
    return
  }
  if (type.either) return
  for (const field of type.fields) {
    const member = value[field.name]
    if (member === undefined || member === null) {
      if (field.required && field.default === undefined) report(issues, [...path, field.name], 'Required value')
    } else checkField(field, member, [...path, field.name], options, issues)
  }
  if (!options.unknownFields) return
  for (const key of Object.keys(value)) {
    if (!type.field(key)) report(issues, [...path, key], 'unknown field')
  }
}

function checkField(
  field: FieldInfo,
  value: unknown,
  path: Path,
  options: ValidateOptions,
  issues: ValueIssue[],
): void {
  checkType(field.type, value, path, options, issues)
  if (!Array.isArray(value)) return
  if (field.listType === 'map') checkKeys(field, value, path, issues)
  if (field.listType === 'set') checkSet(value, path, issues)
}

function checkType(type: FieldType, value: unknown, path: Path, options: ValidateOptions, issues: ValueIssue[]): void {
  switch (type.kind) {
    case 'ref':
      checkObject(fieldTable.type(type.ref), value, path, options, issues)
      return
    case 'array':
      if (!Array.isArray(value)) report(issues, path, `must be an array, not ${jsonType(value)}`)
      else for (const [i, item] of value.entries()) checkType(type.items, item, [...path, i], options, issues)
      return
    case 'map':
      if (!isRecord(value)) report(issues, path, `must be an object, not ${jsonType(value)}`)
      else
        for (const [key, item] of Object.entries(value)) checkType(type.values, item, [...path, key], options, issues)
      return
    case 'scalar': {
      const problem = scalarProblem(type.scalar, value)
      if (problem) report(issues, path, problem)
    }
  }
}

function checkKeys(field: FieldInfo, items: unknown[], path: Path, issues: ValueIssue[]): void {
  const keys = field.listMapKeys ?? []
  const element = field.type.kind === 'array' && field.type.items.kind === 'ref' ? field.type.items.ref : undefined
  const fallback = (key: string): unknown => (element ? fieldTable.type(element).field(key)?.default : undefined)
  const seen = new Set<string>()
  for (const [i, item] of items.entries()) {
    if (!isRecord(item)) continue
    const identity = JSON.stringify(keys.map((key) => item[key] ?? fallback(key) ?? null))
    if (seen.has(identity)) report(issues, [...path, i], `Duplicate value: ${identity}`)
    seen.add(identity)
  }
}

function checkSet(items: unknown[], path: Path, issues: ValueIssue[]): void {
  const seen = new Set<string>()
  for (const [i, item] of items.entries()) {
    const identity = JSON.stringify(item)
    if (seen.has(identity)) report(issues, [...path, i], `Duplicate value: ${identity}`)
    seen.add(identity)
  }
}

function scalarProblem(scalar: ScalarType, value: unknown): string | undefined {
  switch (scalar) {
    case 'string':
    case 'duration':
    case 'bytes':
      return typeof value === 'string' ? undefined : `must be a string, not ${jsonType(value)}`
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `must be a boolean, not ${jsonType(value)}`
    case 'int32':
      return isIntegerWithin(value, 2 ** 31) ? undefined : 'must be a 32-bit integer'
    case 'int64':
      return isIntegerWithin(value, 2 ** 63) ? undefined : 'must be a 64-bit integer'
    case 'double':
      return typeof value === 'number' ? undefined : `must be a number, not ${jsonType(value)}`
    case 'intOrString':
      return typeof value === 'string' || Number.isInteger(value) ? undefined : 'must be an integer or a string'
    case 'quantity':
      return isQuantity(value) ? undefined : 'must be a quantity such as 500m or 1Gi'
    case 'time':
    case 'microTime':
      return typeof value === 'string' && isTime(value) ? undefined : 'must be an RFC 3339 date-time'
    case 'fieldsV1':
    case 'rawExtension':
      return isRecord(value) ? undefined : `must be an object, not ${jsonType(value)}`
    case 'json':
      return undefined
  }
}

function isQuantity(value: unknown): boolean {
  if (typeof value === 'number') return Number.isInteger(value)
  return typeof value === 'string' && parseQuantity(value) !== undefined
}

function isIntegerWithin(value: unknown, limit: number): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= -limit && value < limit
}

function report(issues: ValueIssue[], path: Path, message: string): void {
  issues.push({ path: [...path], message })
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function jsonType(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}
