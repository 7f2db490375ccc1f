import { describe, expect, it } from 'vitest'
import { compileSchema, type JsonSchema, joinFieldErrors, prepareSchema } from './index.js'

const inSpec = (x: JsonSchema): JsonSchema => ({
  type: 'object',
  properties: { spec: { type: 'object', properties: { x } } },
})

function errorsOf(x: JsonSchema, value: unknown): string {
  const errors = compileSchema(inSpec(x)).validate({ spec: { x: value } })
  return errors.length > 0 ? joinFieldErrors(errors) : ''
}

const items = { type: 'array', items: { type: 'string' } } as const

describe('each keyword refuses a bad value in Kubernetes’ words', () => {
  it.each<{ when: string; schema: JsonSchema; value: unknown; says: string }>([
    {
      when: 'a string stands where an integer belongs',
      schema: { type: 'integer' },
      value: 'three',
      says: 'spec.x: Invalid value: "string": spec.x in body must be of type integer: "string"',
    },
    {
      when: 'a fraction stands where an integer belongs',
      schema: { type: 'integer' },
      value: 1.5,
      says: 'spec.x: Invalid value: "number": spec.x in body must be of type integer: "number"',
    },
    {
      when: 'a boolean stands where an int-or-string belongs',
      schema: { 'x-kubernetes-int-or-string': true },
      value: true,
      says: 'spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"',
    },
    {
      when: 'a null stands where the field is not nullable',
      schema: { type: 'string' },
      value: null,
      says: 'spec.x: Invalid value: "null": spec.x in body must be of type string: "null"',
    },
    {
      when: 'a required field is missing',
      schema: { type: 'object', required: ['a'], properties: { a: { type: 'string' } } },
      value: {},
      says: 'spec.x.a: Required value',
    },
    {
      when: 'the value is not in the enum',
      schema: { type: 'string', enum: ['A', 'B'] },
      value: 'C',
      says: 'spec.x: Unsupported value: "C": supported values: "A", "B"',
    },
    {
      when: 'a number is below the minimum',
      schema: { type: 'integer', minimum: 1 },
      value: 0,
      says: 'spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1',
    },
    {
      when: 'a number is at an exclusive maximum',
      schema: { type: 'number', maximum: 2, exclusiveMaximum: true },
      value: 2,
      says: 'spec.x: Invalid value: 2: spec.x in body should be less than 2',
    },
    {
      when: 'a number is no multiple',
      schema: { type: 'integer', multipleOf: 5 },
      value: 7,
      says: 'spec.x: Invalid value: 7: spec.x in body should be a multiple of 5',
    },
    {
      when: 'a text is too short',
      schema: { type: 'string', minLength: 2 },
      value: 'a',
      says: 'spec.x: Invalid value: "a": spec.x in body should be at least 2 chars long',
    },
    {
      when: 'a text is too long, counted in characters',
      schema: { type: 'string', maxLength: 2 },
      value: '🙂🙂🙂',
      says: 'spec.x: Too long: may not be more than 2 bytes',
    },
    {
      when: 'a text does not match the pattern',
      schema: { type: 'string', pattern: '^[a-z]+$' },
      value: 'A1',
      says: 'spec.x: Invalid value: "A1": spec.x in body should match \'^[a-z]+$\'',
    },
    {
      when: 'a text is no date-time',
      schema: { type: 'string', format: 'date-time' },
      value: '2026-02-30T00:00:00Z',
      says: 'spec.x: Invalid value: "2026-02-30T00:00:00Z": spec.x in body must be of type date-time: "2026-02-30T00:00:00Z"',
    },
    {
      when: 'a list has too few items',
      schema: { ...items, minItems: 1 },
      value: [],
      says: 'spec.x: Invalid value: 0: spec.x in body should have at least 1 items',
    },
    {
      when: 'a list has too many items',
      schema: { ...items, maxItems: 1 },
      value: ['a', 'b'],
      says: 'spec.x: Too many: 2: must have at most 1 item',
    },
    {
      when: 'an item is of the wrong type',
      schema: items,
      value: ['a', 2],
      says: 'spec.x[1]: Invalid value: "integer": spec.x[1] in body must be of type string: "integer"',
    },
    {
      when: 'a map has too many properties',
      schema: { type: 'object', additionalProperties: { type: 'string' }, maxProperties: 1 },
      value: { a: '1', b: '2' },
      says: 'spec.x: Too many: 2: must have at most 1 item',
    },
    {
      when: 'a map value is of the wrong type',
      schema: { type: 'object', additionalProperties: { type: 'string' } },
      value: { a: 1 },
      says: 'spec.x.a: Invalid value: "integer": spec.x.a in body must be of type string: "integer"',
    },
    {
      when: 'a set holds a value three times',
      schema: { ...items, 'x-kubernetes-list-type': 'set' },
      value: ['a', 'a', 'a'],
      says: 'spec.x[1]: Duplicate value: "a"',
    },
    {
      when: 'two items of a list map have the same key',
      schema: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        items: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
      },
      value: [{ name: 'a' }, { name: 'b' }, { name: 'a' }],
      says: 'spec.x[2]: Duplicate value: {"name":"a"}',
    },
    {
      when: 'no alternative of anyOf fits',
      schema: { type: 'integer', anyOf: [{ minimum: 5 }, { maximum: 1 }] },
      value: 3,
      says: '[<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf), spec.x: Invalid value: 3: spec.x in body should be greater than or equal to 5]',
    },
    {
      when: 'two alternatives of oneOf fit',
      schema: { type: 'integer', oneOf: [{ minimum: 1 }, { maximum: 5 }] },
      value: 3,
      says: '<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives',
    },
    {
      when: 'what must not be is',
      schema: { type: 'string', not: { enum: ['a'] } },
      value: 'a',
      says: '<nil>: Invalid value: "": "spec.x" must not validate the schema (not)',
    },
    {
      when: 'an embedded resource does not say what it is',
      schema: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
      value: { kind: 'Pod' },
      says: 'spec.x.apiVersion: Required value',
    },
  ])('when $when', ({ schema, value, says }) => {
    expect(errorsOf(schema, value)).toBe(says)
  })

  it.each<{ when: string; schema: JsonSchema; value: unknown }>([
    { when: 'an int-or-string is a number', schema: { 'x-kubernetes-int-or-string': true }, value: 3 },
    {
      when: 'an int-or-string repeats its types in anyOf',
      schema: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
      value: '25%',
    },
    { when: 'a nullable field is null', schema: { type: 'string', nullable: true, minLength: 1 }, value: null },
    { when: 'an integer stands where a number may', schema: { type: 'number' }, value: 3 },
    { when: 'a format is not one the server knows', schema: { type: 'string', format: 'colour' }, value: 'x' },
    {
      when: 'a map key is called __proto__',
      schema: { type: 'object', additionalProperties: { type: 'integer' } },
      value: JSON.parse('{"__proto__":1}'),
    },
  ])('passes when $when', ({ schema, value }) => {
    expect(errorsOf(schema, value)).toBe('')
  })
})

describe('ratcheting', () => {
  const schema = compileSchema(
    inSpec({
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: {
        type: 'object',
        required: ['name'],
        properties: { name: { type: 'string' }, size: { type: 'integer', maximum: 5 } },
      },
    }),
  )
  const old = { spec: { x: [{ name: 'a', size: 9 }] } }

  it('does not hold an unchanged item against an update', () => {
    const value = {
      spec: {
        x: [
          { name: 'b', size: 1 },
          { name: 'a', size: 9 },
        ],
      },
    }
    expect(schema.validate(value, { oldValue: old })).toEqual([])
    expect(schema.validate(value)).toHaveLength(1)
  })

  it('refuses an item that changed and is still wrong', () => {
    const errors = schema.validate({ spec: { x: [{ name: 'a', size: 8 }] } }, { oldValue: old })
    expect(errors.map((error) => error.field)).toEqual(['spec.x[0].size'])
  })
})

it('uses RE2 for patterns JavaScript would read differently', async () => {
  const schema = inSpec({ type: 'string', pattern: '^(a+)+$|\\z.' })
  await prepareSchema(schema)
  expect(compileSchema(schema).validate({ spec: { x: 'aaaa' } })).toEqual([])
  // Exponential in a backtracking engine; the test would not end.
  expect(compileSchema(schema).validate({ spec: { x: `${'a'.repeat(60)}b` } })).toHaveLength(1)
})
