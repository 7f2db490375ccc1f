import { beforeAll, describe, expect, it } from 'vitest'
import { type FieldError, type JsonSchema, joinFieldErrors, type ValidationRule } from '../schema/index.js'
import { compileCelRules, prepareCel, withRuleErrors } from './index.js'

const spec: JsonSchema = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    size: { type: 'integer' },
    ratio: { type: 'number' },
    'dash-ed': { type: 'string' },
    at: { type: 'string', format: 'date-time' },
    tags: { type: 'array', items: { type: 'string' } },
    ports: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer' } } } },
    map: { type: 'object', additionalProperties: { type: 'integer' } },
    port: { 'x-kubernetes-int-or-string': true },
  },
}
const withRule = (rule: ValidationRule): JsonSchema => ({
  type: 'object',
  properties: { spec: { ...spec, 'x-kubernetes-validations': [rule] } },
})
const run = (rule: ValidationRule | string, self: unknown, old?: unknown): string => {
  const rules = compileCelRules(withRule(typeof rule === 'string' ? { rule } : rule))
  expect(rules.compileErrors).toEqual([])
  const errors = rules.validate({ spec: self }, old === undefined ? undefined : { spec: old })
  return errors.length === 0 ? 'ok' : joinFieldErrors(errors)
}

beforeAll(async () => prepareCel(withRule({ rule: 'self.name.matches("a")' })))

describe('expressions', () => {
  it.each<[rule: string, self: unknown]>([
    ['self.size > 2', { size: 3 }],
    ['self.size + 1 == 4 && self.size / 2 == 1', { size: 3 }],
    ['self.ratio >= 1.0', { ratio: 1 }],
    ['!has(self.name) || self.name.startsWith("a")', {}],
    ['self.name in ["a", "b"]', { name: 'a' }],
    ['self.size > 1 ? self.name == "a" : false', { size: 2, name: 'a' }],
    ['self.tags.all(t, t.size() <= 2) && self.tags.exists(t, t == "b")', { tags: ['a', 'b'] }],
    ['self.ports.exists_one(p, p.n == 80)', { ports: [{ n: 80 }, { n: 81 }] }],
    [
      'self.ports.map(p, p.n).sum() == 161 && self.ports.filter(p, p.n > 80).size() == 1',
      { ports: [{ n: 80 }, { n: 81 }] },
    ],
    ['self.tags.isSorted() && self.tags.min() == "a" && self.tags.max() == "c"', { tags: ['a', 'b', 'c'] }],
    ['self.tags.indexOf("b") == 1', { tags: ['a', 'b'] }],
    ['self.name.matches("^[a-z]+$") && self.name.find("[b-z]+") == "bc"', { name: 'abc' }],
    ['self.name == "matches(" || true', { name: 'x' }],
    ['self.map.all(k, self.map[k] > 0)', { map: { a: 1 } }],
    ['self.dash__dash__ed == "x"', { 'dash-ed': 'x' }],
    ['self.at < timestamp("2030-01-01T00:00:00Z")', { at: '2026-01-01T00:00:00Z' }],
    ['type(self.port) == int ? self.port > 0 : self.port != ""', { port: 80 }],
    ['size(self.tags) == 0', { tags: [] }],
    ['has(self.map.a) && self.name.contains("b") && self.name.endsWith("c")', { map: { a: 1 }, name: 'abc' }],
  ])('%s', (rule, self) => {
    expect(run(rule, self)).toBe('ok')
  })
})

describe('what a failing rule says', () => {
  it.each<{ when: string; rule: ValidationRule; self: unknown; says: string }>([
    {
      when: 'there is no message',
      rule: { rule: 'self.size > 5' },
      self: { size: 1 },
      says: 'spec: Invalid value: "object": failed rule: self.size > 5',
    },
    {
      when: 'there is a message',
      rule: { rule: 'false', message: 'never' },
      self: {},
      says: 'spec: Invalid value: "object": never',
    },
    {
      when: 'the message is an expression',
      rule: { rule: 'false', messageExpression: '"size is " + string(self.size)' },
      self: { size: 3 },
      says: 'spec: Invalid value: "object": size is 3',
    },
    {
      when: 'the message expression fails',
      rule: { rule: 'false', message: 'plain', messageExpression: 'self.name' },
      self: {},
      says: 'spec: Invalid value: "object": plain',
    },
    {
      when: 'it has a reason',
      rule: { rule: 'false', reason: 'FieldValueForbidden', message: 'no' },
      self: {},
      says: 'spec: Forbidden: no',
    },
    {
      when: 'it is required',
      rule: { rule: 'has(self.name)', reason: 'FieldValueRequired', fieldPath: '.name' },
      self: {},
      says: 'spec.name: Required value: failed rule: has(self.name)',
    },
  ])('when $when', ({ rule, self, says }) => {
    expect(run(rule, self)).toBe(says)
  })

  it('an evaluation that fails is a refusal, not a crash', () => {
    expect(run('self.name == "a"', {})).toMatch(
      /^spec: Invalid value: "object": .* evaluating rule: self\.name == "a"$/,
    )
  })
})

describe('rules about change', () => {
  const immutable = 'self.name == oldSelf.name'
  it.each<{ when: string; self: unknown; old?: unknown; passes: boolean }>([
    { when: 'the object is new', self: { name: 'a' }, passes: true },
    { when: 'nothing changes', self: { name: 'a' }, old: { name: 'a' }, passes: true },
    { when: 'the field changes', self: { name: 'b' }, old: { name: 'a' }, passes: false },
  ])('when $when', ({ self, old, passes }) => {
    expect(run(immutable, self, old) === 'ok').toBe(passes)
  })

  it('check 108: volumeClaimTemplates of a Sandbox may not change, equality passes', () => {
    const rule =
      '!has(oldSelf.tags) && !has(self.tags) || has(oldSelf.tags) && has(self.tags) && self.tags == oldSelf.tags'
    expect(run(rule, { tags: ['a'] }, { tags: ['a'] })).toBe('ok')
    expect(run(rule, {}, {})).toBe('ok')
    expect(run(rule, { tags: ['b'] }, { tags: ['a'] })).toContain('failed rule')
    expect(run(rule, {}, { tags: ['a'] })).toContain('failed rule')
  })

  it.each<{ when: string; self: unknown; old?: unknown; passes: boolean }>([
    { when: 'the object is new and begins as it must', self: { name: 'first' }, passes: true },
    { when: 'the object is new and does not', self: { name: 'a' }, passes: false },
    { when: 'nothing changes', self: { name: 'a' }, old: { name: 'a' }, passes: true },
    { when: 'the field changes', self: { name: 'b' }, old: { name: 'a' }, passes: false },
  ])('with an optional oldSelf, when $when', ({ self, old, passes }) => {
    const rule = 'oldSelf.hasValue() ? oldSelf.value().name == self.name : self.name == "first"'
    expect(run({ rule, optionalOldSelf: true }, self, old) === 'ok').toBe(passes)
    const shorter = 'oldSelf.?name.orValue("first") == self.name'
    expect(run({ rule: shorter, optionalOldSelf: true }, self, old) === 'ok').toBe(passes)
  })

  it('what was wrong before and did not change does not block an update', () => {
    expect(run('self.size > 5', { size: 1 }, { size: 1 })).toBe('ok')
    expect(run('self.size > 5', { size: 2 }, { size: 1 })).toContain('failed rule')
  })
})

describe('a rule is refused with the CRD when', () => {
  it.each<{ because: string; rule: string }>([
    { because: 'a function is unknown', rule: 'frob(self)' },
    { because: 'a method is unknown', rule: 'self.name.frob()' },
    { because: 'a variable is unknown', rule: 'other == 1' },
    { because: 'a field is unknown', rule: 'self.nmae == "a"' },
    { because: 'a field of an item is unknown', rule: 'self.ports.all(p, p.m > 0)' },
    { because: 'it does not parse', rule: 'self.name ==' },
    { because: 'it is no condition', rule: '"text"' },
  ])('$because', ({ rule }) => {
    const { compileErrors } = compileCelRules(withRule({ rule }))
    expect(compileErrors).toMatchObject([
      { reason: 'FieldValueInvalid', field: 'openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule' },
    ])
  })
})

it.each<{ rule: string; holds: boolean | 'refused' }>([
  { rule: 'size(self.metadata.name) <= 3', holds: true },
  { rule: 'self.metadata.name == "other" || self.kind == "Other"', holds: false },
  { rule: 'has(self.metadata.generateName)', holds: false },
  { rule: 'has(self.metadata.labels)', holds: 'refused' },
])('a rule on the whole object sees name and kind, whatever the schema says of them: $rule', ({ rule, holds }) => {
  const properties = { metadata: { type: 'object' }, spec } as const
  const rules = compileCelRules({ type: 'object', properties, 'x-kubernetes-validations': [{ rule }] })
  if (holds === 'refused') return expect(rules.compileErrors).toHaveLength(1)
  expect(rules.compileErrors).toEqual([])
  const object = { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'one' }, spec: {} }
  expect(rules.validate(object).length === 0).toBe(holds)
})

it('a scalar is compared with values of its type only', () => {
  const schema: JsonSchema = {
    type: 'object',
    properties: { x: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self == 5' }] } },
  }
  expect(compileCelRules(schema).compileErrors).toHaveLength(1)
})

it('walks into lists and maps, with the path of what failed', () => {
  const schema: JsonSchema = {
    type: 'object',
    properties: {
      list: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        items: {
          type: 'object',
          properties: { name: { type: 'string' }, n: { type: 'integer' } },
          'x-kubernetes-validations': [{ rule: 'self.n >= oldSelf.n', message: 'may not shrink' }],
        },
      },
      map: {
        type: 'object',
        additionalProperties: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self > 0' }] },
      },
    },
  }
  const rules = compileCelRules(schema)
  const errors = rules.validate(
    {
      list: [
        { name: 'new', n: 1 },
        { name: 'a', n: 1 },
      ],
      map: { k: 0 },
    },
    { list: [{ name: 'a', n: 2 }], map: {} },
  )
  expect(errors.map((error) => `${error.field}: ${error.message}`)).toEqual([
    'list[1]: Invalid value: "object": may not shrink',
    'map[k]: Invalid value: "integer": failed rule: self > 0',
  ])
})

it('costs nothing where there are no rules', () => {
  expect(compileCelRules(spec).validate({ name: 1 })).toEqual([])
})

describe('together with the schema’s errors', () => {
  const rules = (): ReturnType<typeof compileCelRules> => compileCelRules(withRule({ rule: 'false' }))
  const error = (reason: 'FieldValueInvalid' | 'FieldValueRequired'): FieldError => ({
    reason,
    field: 'spec.x',
    message: 'wrong',
  })

  it('rules run on a value of the right shape', () => {
    expect(withRuleErrors([error('FieldValueInvalid')], rules(), { spec: {} })).toHaveLength(2)
  })

  it('rules do not run on a value of the wrong shape, and the answer says so', () => {
    const errors = withRuleErrors([error('FieldValueRequired')], rules(), { spec: {} })
    expect(joinFieldErrors(errors)).toContain('<nil>: Invalid value: null: some validation rules were not checked')
  })
})
