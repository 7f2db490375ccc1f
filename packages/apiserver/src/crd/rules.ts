import type { FieldError } from '../errors/api-error.js'
import type { JsonSchema } from '../schema/index.js'
import type { JsonObject } from '../store/plain-json.js'

/** The CEL rules of a schema as one check; undefined when it has none. */
export function compileRules(
  _schema: JsonSchema,
): ((object: JsonObject, old: JsonObject | undefined) => readonly FieldError[]) | undefined {
  return undefined
}
