import { compileDefaults } from './defaults.js'
import type { FieldError } from './field-error.js'
import type { JsonSchema } from './json-schema.js'
import { loadPatternEngine, needsPatternEngine } from './pattern.js'
import { compilePrune, type Pruned } from './prune.js'
import { compileCheck } from './validate.js'
import { type Check, ValidationContext } from './validate-context.js'

/** A structural schema as three functions on plain JSON. None of them changes its input. */
export interface CompiledSchema {
  readonly schema: JsonSchema
  /** Drops fields the schema does not know and says which. */
  prune<T>(value: T): Pruned<T>
  /** Fills in defaults where the parent exists. */
  applyDefaults<T>(value: T): T
  /** Everything wrong with the value; with `oldValue`, only where the value differs from it. */
  validate(value: unknown, options?: { readonly oldValue?: unknown }): FieldError[]
}

/** Loads what `compileSchema` needs for this schema: the RE2 engine, and only for patterns that want it. */
export async function prepareSchema(schema: JsonSchema): Promise<void> {
  if (needsPatternEngine(schema)) await loadPatternEngine()
}

/**
 * Compiles the schema of one CRD version. Each of the three walks is built when it is first used. A schema with
 * patterns beyond the plain ones needs `prepareSchema` first.
 */
export function compileSchema(schema: JsonSchema): CompiledSchema {
  let prune: ((value: unknown) => Pruned) | undefined
  let defaults: ((value: unknown) => unknown) | undefined
  let check: Check | undefined
  return {
    schema,
    prune<T>(value: T): Pruned<T> {
      prune ??= compilePrune(schema)
      // Pruning removes optional fields only as far as T's author is concerned.
      return prune(value) as Pruned<T>
    },
    applyDefaults<T>(value: T): T {
      defaults ??= compileDefaults(schema)
      return defaults(value) as T
    },
    validate(value, options) {
      check ??= compileCheck(schema, true)
      const old = options?.oldValue
      // Comparing at every level is dear, so it waits until there is an error it might excuse.
      const context = new ValidationContext()
      check(value, context, old)
      if (context.errors.length === 0 || old === undefined) return context.errors
      const ratcheting = new ValidationContext(true)
      check(value, ratcheting, old)
      return ratcheting.errors
    },
  }
}
