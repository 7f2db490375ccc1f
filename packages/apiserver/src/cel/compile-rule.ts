import { type FieldError, invalidValue } from '../schema/field-error.js'
import type { JsonSchema, ValidationRule } from '../schema/json-schema.js'
import { patternMatcher } from '../schema/pattern.js'
import { inspectExpression } from './cel-fields.js'
import { type CelExpression, type CelVariables, compileExpression, type SelfType } from './engine.js'

export interface CompiledRule {
  readonly rule: ValidationRule
  readonly run: CelExpression
  readonly message?: CelExpression
  readonly usesOldSelf: boolean
  readonly only: ReadonlySet<string> | undefined
}

/** A rule over values of this schema; undefined when it does not compile, which `errors` then says below `path`. */
export function compileRule(
  rule: ValidationRule,
  schema: JsonSchema,
  path: string,
  errors: FieldError[],
): CompiledRule | undefined {
  try {
    const variables = { self: selfType(schema), isOldOptional: rule.optionalOldSelf === true }
    const run = compileExpression(rule.rule, 'bool', variables)
    const fields = inspectExpression(run.ast, schema)
    if (fields.undefinedFields.length > 0) throw new Error(`undefined field '${fields.undefinedFields[0]}'`)
    const badPattern = fields.patterns.find((pattern) => !isPattern(pattern))
    if (badPattern !== undefined) throw new Error(`invalid matches argument ${JSON.stringify(badPattern)}`)
    if (rule.optionalOldSelf && !fields.usesOldSelf) {
      const why = 'may not be set if oldSelf is not used in rule'
      errors.push(invalidValue(`${path}.optionalOldSelf`, true, why))
    }
    const message = rule.messageExpression ? compileMessage(rule, variables, path, errors) : undefined
    // A message may look at other fields than its rule does.
    const only = message ? undefined : fields.only
    return { rule, run, usesOldSelf: fields.usesOldSelf, only, ...(message && { message }) }
  } catch (error) {
    errors.push(invalidValue(`${path}.rule`, internalRule(rule), compileFailure(error)))
    return undefined
  }
}

function compileMessage(
  rule: ValidationRule,
  variables: CelVariables,
  path: string,
  errors: FieldError[],
): CelExpression | undefined {
  try {
    return compileExpression(rule.messageExpression ?? '', 'string', variables)
  } catch (error) {
    const why = compileFailure(error).replace('cel expression', 'messageExpression')
    const text = why.startsWith('compilation') ? `messageExpression ${why}` : why
    errors.push(invalidValue(`${path}.messageExpression`, internalRule(rule), text))
    return undefined
  }
}

function isPattern(text: string): boolean {
  try {
    patternMatcher(text)
    return true
  } catch {
    return false
  }
}

function selfType({ type, format, nullable }: JsonSchema): SelfType {
  if (nullable || format === 'date-time' || format === 'date' || format === 'byte' || format === 'datetime')
    return 'dyn'
  if (type === 'integer') return 'int'
  if (type === 'number') return 'double'
  if (type === 'boolean') return 'bool'
  return type === 'string' ? 'string' : 'dyn'
}

/** A rule as Kubernetes prints it in an error: its internal form. */
function internalRule(rule: ValidationRule): Record<string, unknown> {
  return {
    Rule: rule.rule,
    Message: rule.message ?? '',
    MessageExpression: rule.messageExpression ?? '',
    Reason: rule.reason ?? null,
    FieldPath: rule.fieldPath ?? '',
    OptionalOldSelf: rule.optionalOldSelf ?? null,
  }
}

function compileFailure(error: unknown): string {
  const text = firstLine(error)
  if (text.startsWith('cel expression')) return text
  const unknown = /^found no matching overload for '(?:\w+\.)?(\w+)\(/.exec(text)?.[1]
  const reason = unknown ? `undeclared reference to '${unknown}' (in container '')` : text
  return `compilation failed: ERROR: <input>: ${reason}`
}

/** What an error of the engine says, as the middle of a sentence. */
export function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  const line = text.split('\n')[0]!.replaceAll('re2Matches', 'matches')
  return line.charAt(0).toLowerCase() + line.slice(1)
}
