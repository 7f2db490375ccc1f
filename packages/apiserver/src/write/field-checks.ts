import { apiError } from '../errors/api-error.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import type { FieldValidation } from '../request/query.js'
import type { JsonObject } from '../store/plain-json.js'
import { unknownFields } from './unknown-fields.js'

/**
 * Drops fields the kind does not have. `Strict` refuses them with 400, `Warn` adds a warning for each. Custom kinds prune
 * by their schema, built-in ones by the field table.
 */
export function dropUnknownFields(
  kind: KindDefinition,
  object: JsonObject,
  validation: FieldValidation,
  warnings: string[],
): JsonObject {
  const { value, unknown } = kind.schema ? kind.schema.prune(object) : unknownFields(kind, object)
  if (unknown.length === 0 || validation === 'Ignore') return value
  const texts = unknown.map((path) => `unknown field ${JSON.stringify(path)}`)
  if (validation === 'Strict') {
    const prefix = `${kind.kind} in version ${JSON.stringify(kind.version)} cannot be handled as a ${kind.kind}`
    throw apiError(400, 'BadRequest', `${prefix}: strict decoding error: ${texts.join(', ')}`)
  }
  warnings.push(...texts)
  return value
}
