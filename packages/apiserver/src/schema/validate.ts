import { invalidValue, requiredValue, tooMany, typeInvalid } from './field-error.js'
import { type JsonSchema, mapValueSchema } from './json-schema.js'
import { isRecord, type JsonRecord, jsonEqual, ownValue } from './json-value.js'
import { compileListType, correlateItems } from './list-type.js'
import { type Check, ValidationContext } from './validate-context.js'
import { compileEnum, compileNumberChecks, compileStringChecks, compileType, jsonTypeOf } from './validate-value.js'

/**
 * Compiles a schema to one check per node. With an `old` counterpart a subtree that did not change is not looked at:
 * an update is not refused for what was already wrong (ratcheting).
 */
export function compileCheck(schema: JsonSchema, isResource = false): Check {
  const typeOf = compileType(schema)
  const checkEnum = compileEnum(schema)
  const rules = compact([compileJunctors(schema), compileStringChecks(schema), compileNumberChecks(schema), checkEnum])
  const record = compileRecord(schema, isResource || schema['x-kubernetes-embedded-resource'] === true)
  const array = compileArray(schema)

  return (value, context, old) => {
    if (old !== undefined && (value === old || (context.isRatcheting && jsonEqual(value, old)))) return
    if (typeOf) {
      const expected = typeOf(value)
      if (expected !== undefined) {
        const field = context.field()
        const actual = jsonTypeOf(value)
        context.add(typeInvalid(field, actual, `${field} in body must be of type ${expected}: "${actual}"`))
        if (value !== null) checkEnum?.(value, context)
        return
      }
    }
    if (value === null) return
    for (const rule of rules) rule(value, context, old)
    if (Array.isArray(value)) array?.(value, context, old)
    else if (typeof value === 'object') record?.(value, context, old)
  }
}

/** A check that is compiled when a value first needs it: most of a large schema never does. */
function lazyCheck(schema: JsonSchema): Check {
  let check: Check | undefined
  return (value, context, old) => {
    check ??= compileCheck(schema)
    check(value, context, old)
  }
}

function compileRecord(schema: JsonSchema, isResource: boolean): Check | undefined {
  const properties = new Map<string, Check>()
  for (const [name, child] of Object.entries(schema.properties ?? {})) properties.set(name, lazyCheck(child))
  const values = mapValueSchema(schema)
  const checkValue = values ? lazyCheck(values) : undefined
  const required = schema.required ?? []
  const { minProperties, maxProperties } = schema
  const isOpen = minProperties === undefined && maxProperties === undefined
  if (properties.size === 0 && !checkValue && required.length === 0 && isOpen) {
    return isResource ? checkEmbedded : undefined
  }

  return (value, context, old) => {
    // Reached only for objects; see the dispatch above.
    const object = value as JsonRecord
    const before = isRecord(old) ? old : undefined
    if (!isOpen) checkCount(Object.keys(object).length, minProperties, maxProperties, 'properties', context)
    for (const name of required) {
      if (ownValue(object, name) === undefined) context.add(requiredValue(context.field(name)))
    }
    // Over the value, which is small, rather than the schema, which knows everything a pod may have.
    for (const name of Object.keys(object)) {
      const check = properties.get(name) ?? checkValue
      if (!check || object[name] === undefined) continue
      context.push(name)
      check(object[name], context, before && ownValue(before, name))
      context.pop()
    }
    if (isResource && context.field() !== '') checkEmbedded(object, context)
  }
}

/** An embedded resource names its type whether its schema says so or not; the root's is checked by the request path. */
const checkEmbedded: Check = (value, context) => {
  if (!isRecord(value) || context.field() === '') return
  for (const name of ['apiVersion', 'kind']) {
    const text = ownValue(value, name)
    if (text === undefined) context.add(requiredValue(context.field(name)))
    else if (typeof text !== 'string') context.add(invalidValue(context.field(name), text, 'must be a string'))
    else if (text === '') context.add(invalidValue(context.field(name), text, 'must not be empty'))
  }
}

function compileArray(schema: JsonSchema): Check | undefined {
  const { minItems, maxItems, items } = schema
  const checkItem = items ? lazyCheck(items) : undefined
  const listType = compileListType(schema)
  if (!checkItem && !listType && minItems === undefined && maxItems === undefined) return undefined
  return (value, context, old) => {
    // Reached only for arrays; see the dispatch above.
    const list = value as unknown[]
    checkCount(list.length, minItems, maxItems, 'items', context)
    listType?.(list, context)
    if (!checkItem) return
    const before = context.isRatcheting && Array.isArray(old) ? correlateItems(schema, old) : undefined
    for (let i = 0; i < list.length; i++) {
      context.push(i)
      checkItem(list[i], context, before?.(list[i]))
      context.pop()
    }
  }
}

function checkCount(
  count: number,
  min: number | undefined,
  max: number | undefined,
  unit: string,
  context: ValidationContext,
): void {
  if (max !== undefined && count > max) context.add(tooMany(context.field(), count, max))
  if (min !== undefined && count < min) {
    const field = context.field()
    context.add(invalidValue(field, count, `${field} in body should have at least ${min} ${unit}`))
  }
}

function compileJunctors(schema: JsonSchema): Check | undefined {
  // In an int-or-string the customary anyOf repeats what the type already says.
  const anyOf = schema['x-kubernetes-int-or-string'] ? undefined : compileAll(schema.anyOf)
  const oneOf = compileAll(schema.oneOf)
  const allOf = schema['x-kubernetes-int-or-string'] ? compileAll(withoutTypes(schema.allOf)) : compileAll(schema.allOf)
  const not = schema.not && compileCheck(schema.not)
  if (!anyOf && !oneOf && !allOf && !not) return undefined
  return (value, context) => {
    const fail = (text: string): void => context.add(invalidValue('', '', `${JSON.stringify(context.field())} ${text}`))
    if (anyOf && !anyOf.some((check) => passes(check, value))) {
      fail('must validate at least one schema (anyOf)')
      anyOf[0]!(value, context)
    }
    if (oneOf) {
      const valid = oneOf.filter((check) => passes(check, value)).length
      const found = valid === 0 ? 'Found none valid' : `Found ${valid} valid alternatives`
      if (valid !== 1) fail(`must validate one and only one schema (oneOf). ${found}`)
      if (valid === 0) oneOf[0]!(value, context)
    }
    if (allOf) {
      const valid = allOf.filter((check) => passes(check, value)).length
      if (valid !== allOf.length) {
        for (const check of allOf) check(value, context)
        fail(`must validate all the schemas (allOf)${valid === 0 ? '. None validated' : ''}`)
      }
    }
    if (not && passes(not, value)) fail('must not validate the schema (not)')
  }
}

function passes(check: Check, value: unknown): boolean {
  const context = new ValidationContext()
  check(value, context)
  return context.errors.length === 0
}

function compileAll(schemas: readonly JsonSchema[] | undefined): Check[] | undefined {
  return schemas?.length ? schemas.map((schema) => compileCheck(schema)) : undefined
}

/** `allOf: [{anyOf: [{type: integer}, {type: string}]}, …]` is the other customary spelling of int-or-string. */
function withoutTypes(schemas: readonly JsonSchema[] | undefined): readonly JsonSchema[] | undefined {
  return schemas?.filter((schema) => !schema.anyOf?.every((each) => each.type === 'integer' || each.type === 'string'))
}

function compact<T>(list: (T | undefined)[]): T[] {
  return list.filter((each) => each !== undefined)
}
