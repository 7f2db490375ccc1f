import { expect, it } from 'vitest'
import { compileSchema, type JsonSchema } from './index.js'

const schema: JsonSchema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        size: { type: 'integer', default: 3 },
        maybe: { type: 'string', nullable: true, default: 'x' },
        plain: { type: 'string' },
        nested: { type: 'object', default: {}, properties: { on: { type: 'boolean', default: true } } },
        inner: { type: 'object', properties: { on: { type: 'boolean', default: true } } },
        list: { type: 'array', items: { type: 'object', properties: { p: { type: 'string', default: 'TCP' } } } },
        map: {
          type: 'object',
          additionalProperties: { type: 'object', properties: { n: { type: 'integer', default: 1 } } },
        },
      },
    },
  },
}
const filled = { size: 3, maybe: 'x', nested: { on: true } }

it.each<{ when: string; spec: unknown; becomes: unknown }>([
  { when: 'nothing is set', spec: {}, becomes: filled },
  { when: 'a value is set', spec: { size: 0 }, becomes: { ...filled, size: 0 } },
  { when: 'null stands where it may', spec: { maybe: null }, becomes: { ...filled, maybe: null } },
  { when: 'null stands where it may not', spec: { size: null }, becomes: filled },
  { when: 'null stands where there is no default', spec: { plain: null }, becomes: filled },
  { when: 'a parent without default is absent', spec: { list: [{}] }, becomes: { ...filled, list: [{ p: 'TCP' }] } },
  { when: 'a parent is there', spec: { inner: {} }, becomes: { ...filled, inner: { on: true } } },
  { when: 'a map has values', spec: { map: { a: {} } }, becomes: { ...filled, map: { a: { n: 1 } } } },
])('when $when', ({ spec, becomes }) => {
  expect(compileSchema(schema).applyDefaults<unknown>({ spec })).toEqual({ spec: becomes })
})

it('does not invent a parent', () => {
  expect(compileSchema(schema).applyDefaults<unknown>({})).toEqual({})
})

it('returns the same object when everything is set, and never shares a default', () => {
  const compiled = compileSchema(schema)
  const once = compiled.applyDefaults<{ spec: { nested?: object } }>({ spec: {} })
  const again = compiled.applyDefaults<{ spec: { nested?: object } }>({ spec: {} })
  expect(compiled.applyDefaults(once)).toBe(once)
  expect(once.spec.nested).not.toBe(again.spec.nested)
})
