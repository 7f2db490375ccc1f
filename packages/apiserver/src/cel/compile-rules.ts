import {
  duplicateValue,
  type FieldError,
  type FieldErrorReason,
  forbidden,
  invalidValue,
  requiredValue,
} from '../schema/field-error.js'
import { type JsonSchema, someSchema, type ValidationRule } from '../schema/json-schema.js'
import { isRecord, jsonEqual, ownValue } from '../schema/json-value.js'
import { correlateItems } from '../schema/list-type.js'
import { loadPatternEngine } from '../schema/pattern.js'
import { withObjectMeta } from './cel-fields.js'
import { toCelValue } from './cel-value.js'
import { type CompiledRule, compileRule, firstLine } from './compile-rule.js'
import { type CelExpression, loadCelEngine, optionalValue } from './engine.js'

/** The CEL rules of a schema, ready to run. */
export interface CelRules {
  /** Rules that do not compile; a CRD that has any is refused. */
  readonly compileErrors: readonly FieldError[]
  /** Runs the rules. Rules about `oldSelf` run only where there is an old value; a failing evaluation is `Invalid`. */
  validate(self: unknown, oldSelf?: unknown): FieldError[]
}

type NodeCheck = (value: unknown, old: unknown, path: string, errors: FieldError[]) => void

/** Whether a schema has CEL rules at all. */
export function hasCelRules(schema: JsonSchema): boolean {
  let hasRules = known.get(schema)
  if (hasRules === undefined) {
    hasRules = (schema['x-kubernetes-validations']?.length ?? 0) > 0
    // Every child is asked, so that each answer is known when its own turn comes.
    for (const [, child] of childSchemas(schema)) hasRules = hasCelRules(child) || hasRules
    known.set(schema, hasRules)
  }
  return hasRules
}

const known = new WeakMap<JsonSchema, boolean>()

/** Loads what `compileCelRules` needs for this schema: nothing at all where it has no rules. */
export async function prepareCel(schema: JsonSchema): Promise<void> {
  if (!hasCelRules(schema)) return
  await loadCelEngine()
  const usesPatterns = someSchema(schema, (each) =>
    (each['x-kubernetes-validations'] ?? []).some(({ rule }) => /\b(matches|find)\s*\(/.test(rule)),
  )
  if (usesPatterns) await loadPatternEngine()
}

/** Errors that say a value is not of its declared shape, which rules are written against. */
const BLOCKING: ReadonlySet<FieldErrorReason> = new Set([
  'FieldValueRequired',
  'FieldValueTypeInvalid',
  'FieldValueNotSupported',
  'FieldValueTooLong',
  'FieldValueTooMany',
])

/**
 * Schema errors together with those of the rules. Rules are not run on a value that has not the shape they were
 * written for; an error of its own then says so.
 */
export function withRuleErrors(
  schemaErrors: readonly FieldError[],
  rules: CelRules | undefined,
  self: unknown,
  oldSelf?: unknown,
): FieldError[] {
  if (!rules) return [...schemaErrors]
  if (!schemaErrors.some((error) => BLOCKING.has(error.reason)))
    return [...schemaErrors, ...rules.validate(self, oldSelf)]
  return [
    ...schemaErrors,
    invalidValue(
      '',
      null,
      'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
    ),
  ]
}

/** Compiles every rule of a schema. A schema with rules needs `prepareCel` first; one without costs nothing. */
export function compileCelRules(schema: JsonSchema, path = 'openAPIV3Schema'): CelRules {
  const compileErrors: FieldError[] = []
  const check = compileNode(schema, path, compileErrors, { isResource: true })
  return {
    compileErrors,
    validate(self, oldSelf) {
      const errors: FieldError[] = []
      check?.(self, oldSelf, '', errors)
      return errors
    },
  }
}

function compileNode(
  schema: JsonSchema,
  path: string,
  compileErrors: FieldError[],
  { isResource = schema['x-kubernetes-embedded-resource'] === true } = {},
): NodeCheck | undefined {
  if (!hasCelRules(schema)) return undefined
  const rules: CompiledRule[] = []
  const known = isResource ? withObjectMeta(schema) : schema
  for (const [i, rule] of (schema['x-kubernetes-validations'] ?? []).entries()) {
    if (!rule.rule) continue // refused with the schema
    const compiled = compileRule(rule, known, `${path}.x-kubernetes-validations[${i}]`, compileErrors)
    if (compiled) rules.push(compiled)
  }
  const properties: [string, NodeCheck][] = []
  let items: NodeCheck | undefined
  let values: NodeCheck | undefined
  for (const [name, child] of childSchemas(schema)) {
    const step = child === schema.items ? 'items' : name === '' ? 'additionalProperties' : `properties[${name}]`
    const check = hasCelRules(child) ? compileNode(child, `${path}.${step}`, compileErrors) : undefined
    if (!check) continue
    if (step === 'items') items = check
    else if (step === 'additionalProperties') values = check
    else properties.push([name, check])
  }

  return (value, old, at, errors) => {
    if (value === null || value === undefined) return
    if (rules.length > 0) runRules(rules, schema, value, old, at, errors)
    if (Array.isArray(value)) {
      if (!items) return
      const before = Array.isArray(old) ? correlateItems(schema, old) : undefined
      for (const [i, item] of value.entries()) items(item, before?.(item), `${at}[${i}]`, errors)
      return
    }
    if (!isRecord(value)) return
    const before = isRecord(old) ? old : undefined
    for (const [name, check] of properties) {
      check(ownValue(value, name), before && ownValue(before, name), at ? `${at}.${name}` : name, errors)
    }
    if (!values) return
    for (const key of Object.keys(value)) {
      values(value[key], before && ownValue(before, key), `${at}[${key}]`, errors)
    }
  }
}

/** The schemas of a value's parts, by property name; items and map values have none. */
function* childSchemas({
  properties,
  items,
  additionalProperties,
}: JsonSchema): Iterable<readonly [name: string, child: JsonSchema]> {
  for (const name in properties) yield [name, properties[name]!]
  if (typeof additionalProperties === 'object') yield ['', additionalProperties]
  if (items) yield ['', items]
}

function runRules(
  rules: readonly CompiledRule[],
  schema: JsonSchema,
  value: unknown,
  old: unknown,
  path: string,
  errors: FieldError[],
): void {
  const hasOld = old !== undefined && old !== null
  // What did not change is not held against an update, unless the rule is about change.
  const isUnchanged = hasOld && jsonEqual(value, old)
  for (const compiled of rules) {
    if (compiled.usesOldSelf ? !hasOld && !compiled.rule.optionalOldSelf : isUnchanged) continue
    const error = runRule(compiled, schema, value, hasOld ? old : undefined, path)
    if (error) errors.push(error)
  }
}

function runRule(
  { rule, run, message, only }: CompiledRule,
  schema: JsonSchema,
  value: unknown,
  old: unknown,
  path: string,
): FieldError | undefined {
  const before = toCelValue(old, schema, only)
  const oldSelf = rule.optionalOldSelf ? optionalValue(before) : before
  const variables = { self: toCelValue(value, schema, only), oldSelf }
  const type = schema.type ?? ''
  try {
    if (run(variables) === true) return undefined
  } catch (error) {
    return invalidValue(path, type, `${firstLine(error)} evaluating rule: ${(rule.message ?? rule.rule).trim()}`)
  }
  const text = messageText(message, variables) ?? rule.message?.trim() ?? `failed rule: ${rule.rule.trim()}`
  return errorFor(rule, rule.fieldPath ? joinPath(path, rule.fieldPath) : path, type, text)
}

function messageText(message: CelExpression | undefined, variables: Record<string, unknown>): string | undefined {
  try {
    const text = message?.(variables)
    return typeof text === 'string' && text.trim() !== '' && !text.includes('\n') ? text.trim() : undefined
  } catch {
    return undefined // the rule failed all the same, and its fixed message says so
  }
}

function joinPath(path: string, fieldPath: string): string {
  const relative = fieldPath.startsWith('.') ? fieldPath.slice(1) : fieldPath
  return path ? `${path}.${relative}` : relative
}

function errorFor(rule: ValidationRule, path: string, type: string, text: string): FieldError {
  switch (rule.reason) {
    case 'FieldValueForbidden':
      return forbidden(path, text)
    case 'FieldValueRequired':
      return requiredValue(path, text)
    case 'FieldValueDuplicate':
      return duplicateValue(path, type)
    default:
      return invalidValue(path, type, text)
  }
}
