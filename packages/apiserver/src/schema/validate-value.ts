import { invalidValue, notSupported, tooLong, typeInvalid } from './field-error.js'
import { formatCheck } from './format.js'
import type { JsonSchema } from './json-schema.js'
import { jsonEqual } from './json-value.js'
import { type PatternMatcher, patternMatcher } from './pattern.js'
import type { Check, ValidationContext } from './validate-context.js'

/** JSON type of a value in the schema's words. */
export function jsonTypeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

/** The type check of a schema node; undefined where any type is welcome. Returns false when the type is wrong. */
export function compileType(schema: JsonSchema): ((value: unknown) => string | undefined) | undefined {
  const types = schema['x-kubernetes-int-or-string'] ? ['integer', 'string'] : schema.type ? [schema.type] : []
  if (types.length === 0) return undefined
  const expected = types.join(',')
  const nullable = schema.nullable === true
  const single = types.length === 1 ? types[0]! : undefined
  return (value) => {
    const actual = jsonTypeOf(value)
    if (actual === single || types.includes(actual)) return undefined
    if (actual === 'null' && nullable) return undefined
    if (actual === 'integer' && single === 'number') return undefined
    return expected
  }
}

/** Checks on strings: length, pattern and format. Values of other types pass. */
export function compileStringChecks(schema: JsonSchema): Check | undefined {
  const { minLength, maxLength, pattern } = schema
  const format = formatCheck(schema.format)
  if (minLength === undefined && maxLength === undefined && pattern === undefined && !format) return undefined
  const checkText = compileTextCheck(schema)
  return (value, context) => {
    if (typeof value !== 'string') return
    checkText(value, context)
    if (format && !format(value)) {
      const field = context.field()
      context.add(
        typeInvalid(field, value, `${field} in body must be of type ${schema.format}: ${JSON.stringify(value)}`),
      )
    }
  }
}

/** Length and pattern: the first that fails is the one reported. */
function compileTextCheck({
  minLength,
  maxLength,
  pattern,
}: JsonSchema): (value: string, context: ValidationContext) => void {
  let matcher: PatternMatcher | undefined
  return (value, context) => {
    if (maxLength !== undefined && value.length > maxLength && characters(value) > maxLength) {
      context.add(tooLong(context.field(), maxLength))
    } else if (minLength !== undefined && characters(value) < minLength) {
      const field = context.field()
      context.add(invalidValue(field, value, `${field} in body should be at least ${minLength} chars long`))
    } else if (pattern !== undefined) {
      matcher ??= patternMatcher(pattern)
      if (matcher(value)) return
      const field = context.field()
      context.add(invalidValue(field, value, `${field} in body should match '${pattern}'`))
    }
  }
}

function characters(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** Checks on numbers: bounds and multiples. */
export function compileNumberChecks(schema: JsonSchema): Check | undefined {
  const { minimum, maximum, multipleOf } = schema
  if (minimum === undefined && maximum === undefined && multipleOf === undefined) return undefined
  const overMinimum = schema.exclusiveMinimum ? 'greater than' : 'greater than or equal to'
  const underMaximum = schema.exclusiveMaximum ? 'less than' : 'less than or equal to'
  return (value, context) => {
    if (typeof value !== 'number') return
    const fail = (rule: string): void => {
      const field = context.field()
      context.add(invalidValue(field, value, `${field} in body should be ${rule}`))
    }
    if (multipleOf !== undefined && !isMultiple(value, multipleOf)) fail(`a multiple of ${multipleOf}`)
    if (maximum !== undefined && (schema.exclusiveMaximum ? value >= maximum : value > maximum)) {
      fail(`${underMaximum} ${maximum}`)
    }
    if (minimum !== undefined && (schema.exclusiveMinimum ? value <= minimum : value < minimum)) {
      fail(`${overMinimum} ${minimum}`)
    }
  }
}

function isMultiple(value: number, factor: number): boolean {
  const quotient = value / factor
  return Math.abs(quotient - Math.round(quotient)) < 1e-9
}

/** The check of `enum`. */
export function compileEnum(schema: JsonSchema): Check | undefined {
  const allowed = schema.enum
  if (!allowed || allowed.length === 0) return undefined
  const scalars = new Set(allowed)
  return (value, context) => {
    if (scalars.has(value) || allowed.some((each) => jsonEqual(each, value))) return
    context.add(notSupported(context.field(), value, allowed))
  }
}
