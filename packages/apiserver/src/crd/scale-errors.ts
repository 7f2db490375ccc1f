import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import type { ScalePaths } from '../registry/kind-definition.js'
import { type FieldError, invalidValue } from '../schema/field-error.js'

const MAX_INT32 = 2_147_483_647

/**
 * What is wrong with the fields an object is scaled by. A schema may say less about them than Kubernetes demands of every
 * scale, so they are checked once more, under the path as the definition writes it.
 */
export function scaleErrors(object: JsonObject, { specReplicas, statusReplicas, selector }: ScalePaths): FieldError[] {
  return [
    ...replicaErrors(object, specReplicas),
    ...replicaErrors(object, statusReplicas),
    ...(selector ? selectorErrors(object, selector) : []),
  ]
}

function replicaErrors(object: JsonObject, path: string): FieldError[] {
  const found = read(object, path)
  if (found.missing) return []
  const { value, problem } = found
  if (problem) return [invalidValue(`.${path}`, 0, problem)]
  if (typeof value !== 'number' || !Number.isInteger(value))
    return [invalidValue(`.${path}`, 0, wrongType(path, value, 'int64'))]
  if (value < 0) return [invalidValue(`.${path}`, value, 'should be a non-negative integer')]
  return value > MAX_INT32 ? [invalidValue(`.${path}`, value, `should be less than or equal to ${MAX_INT32}`)] : []
}

function selectorErrors(object: JsonObject, path: string): FieldError[] {
  const found = read(object, path)
  if (found.missing) return []
  const { value, problem } = found
  if (problem) return [invalidValue(`.${path}`, '', problem)]
  return typeof value === 'string' ? [] : [invalidValue(`.${path}`, '', wrongType(path, value, 'string'))]
}

type Found = { missing: true } | { missing: false; value: unknown; problem?: string }

function read(object: JsonObject, path: string): Found {
  let value: unknown = object
  for (const key of path.split('.')) {
    if (value === undefined || value === null) return { missing: true }
    if (!isJsonObject(value)) {
      return { missing: false, value, problem: wrongType(path, value, 'map[string]interface{}') }
    }
    value = value[key]
  }
  return value === undefined ? { missing: true } : { missing: false, value }
}

const wrongType = (path: string, value: unknown, wanted: string): string =>
  `.${path} accessor error: ${goText(value)} is of the type ${goType(value)}, expected ${wanted}`

function goType(value: unknown): string {
  if (value === null) return '<nil>'
  if (Array.isArray(value)) return '[]interface {}'
  if (typeof value === 'object') return 'map[string]interface {}'
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64'
  return typeof value === 'boolean' ? 'bool' : 'string'
}

/** A value as Go prints it, which is what clients of a real server read. */
function goText(value: unknown): string {
  if (value === null) return '<nil>'
  if (Array.isArray(value)) return `[${value.map(goText).join(' ')}]`
  if (typeof value !== 'object') return String(value)
  const entries = Object.entries(value as JsonObject).sort(([a], [b]) => (a < b ? -1 : 1))
  return `map[${entries.map(([key, each]) => `${key}:${goText(each)}`).join(' ')}]`
}
