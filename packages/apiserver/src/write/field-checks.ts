import { undecodable } from '../errors/api-error.js'
import type { JsonObject } from '../objects/plain-json.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import { finalizerWarnings } from '../registry/names.js'
import type { FieldValidation } from '../request/query.js'
import { type KnownFields, unknownFields, unknownMetadata } from './unknown-fields.js'

/** How strictly the fields of a body are looked at, and where what is found is told. */
interface FieldPolicy {
  readonly fieldValidation: FieldValidation
  readonly warnings: string[]
  readonly duplicates?: string[] | undefined
}

/**
 * Drops fields the kind does not have. `Strict` refuses them, and those that stood twice; `Warn` adds a warning for each.
 * Custom kinds prune by their schema, built-in ones by the field table, which also leaves out zeros. Of an applied
 * configuration every field counts: zeros stay, and an unknown field is refused in any case.
 */
export function dropUnknownFields(
  kind: KindDefinition,
  object: JsonObject,
  { fieldValidation, warnings, duplicates = [] }: FieldPolicy,
  isApplied = false,
): JsonObject {
  const { value, unknown } = kind.schema ? knownByKind(kind, object) : unknownFields(kind, object, isApplied)
  if (unknown.length === 0 && duplicates.length === 0) return value
  const texts = [
    // Told once, however often the object is looked at on its way.
    ...duplicates.splice(0).map((path) => `duplicate field ${JSON.stringify(path)}`),
    ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`),
  ]
  if (isApplied && unknown.length > 0 && fieldValidation !== 'Strict') {
    const paths = unknown.map((path) => `.${path}: field not declared in schema`)
    throw undecodable(
      `failed to create typed patch object (${kind.apiVersion}, Kind=${kind.kind}): ${paths.join(', ')}`,
    )
  }
  if (fieldValidation === 'Ignore') return value
  if (fieldValidation === 'Strict') {
    const prefix = `${kind.kind} in version ${JSON.stringify(kind.version)} cannot be handled as a ${kind.kind}`
    throw undecodable(`${prefix}: strict decoding error: ${texts.join(', ')}`)
  }
  warnings.push(...texts)
  return value
}

function knownByKind(kind: KindDefinition, object: JsonObject): KnownFields {
  const metadata = unknownMetadata(kind, object)
  const { value, unknown } = kind.schema!.prune(metadata.value)
  return metadata.unknown.length === 0 ? { value, unknown } : { value, unknown: [...metadata.unknown, ...unknown] }
}

/** What the writer should know about an object that is stored all the same. */
export function warningsOf(kind: KindDefinition, object: JsonObject): string[] {
  return kind.isCustom ? finalizerWarnings(object.metadata as JsonObject) : (kind.warnings?.(object) ?? [])
}
