import { expect, it } from 'vitest'
import { compileSchema, type JsonSchema } from './index.js'

const schema: JsonSchema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        name: { type: 'string' },
        list: { type: 'array', items: { type: 'object', properties: { a: { type: 'string' } } } },
        map: { type: 'object', additionalProperties: { type: 'object', properties: { a: { type: 'string' } } } },
        free: {
          type: 'object',
          'x-kubernetes-preserve-unknown-fields': true,
          properties: { strict: { type: 'object', properties: { a: { type: 'string' } } } },
        },
        pod: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { spec: { type: 'object' } } },
        port: { 'x-kubernetes-int-or-string': true },
      },
    },
  },
}

it.each<{ when: string; spec: unknown; left: unknown; dropped: string[] }>([
  { when: 'every field is known', spec: { name: 'a', port: '80' }, left: { name: 'a', port: '80' }, dropped: [] },
  { when: 'a field is unknown', spec: { name: 'a', nmae: 'b' }, left: { name: 'a' }, dropped: ['spec.nmae'] },
  {
    when: 'a field of an item is unknown',
    spec: { list: [{ a: '1' }, { a: '2', b: '3' }] },
    left: { list: [{ a: '1' }, { a: '2' }] },
    dropped: ['spec.list[1].b'],
  },
  {
    when: 'a field of a map value is unknown',
    spec: { map: { k: { a: '1', b: '2' } } },
    left: { map: { k: { a: '1' } } },
    dropped: ['spec.map.k.b'],
  },
  {
    when: 'unknown fields are to be kept, but not below a field that says otherwise',
    spec: { free: { any: { thing: 1 }, strict: { a: '1', b: 2 } } },
    left: { free: { any: { thing: 1 }, strict: { a: '1' } } },
    dropped: ['spec.free.strict.b'],
  },
  {
    when: 'a resource is embedded',
    spec: { pod: { apiVersion: 'v1', kind: 'Pod', metadata: { labels: { a: 'b' }, odd: 1 }, spec: { x: 1 }, more: 1 } },
    left: { pod: { apiVersion: 'v1', kind: 'Pod', metadata: { labels: { a: 'b' } }, spec: {} } },
    dropped: ['spec.pod.metadata.odd', 'spec.pod.spec.x', 'spec.pod.more'],
  },
  {
    when: 'a field is called like a property of every object',
    spec: JSON.parse('{"constructor":1,"__proto__":{"a":1}}'),
    left: {},
    dropped: ['spec.constructor', 'spec.__proto__'],
  },
])('when $when', ({ spec, left, dropped }) => {
  const object = Object.freeze({ apiVersion: 'a/v1', kind: 'K', metadata: { name: 'x', labels: {} }, spec })
  const pruned = compileSchema(schema).prune<unknown>(object)
  expect(pruned.value).toEqual({ ...object, spec: left })
  expect(pruned.unknownPaths).toEqual(dropped)
})

it('returns the same object when there is nothing to drop', () => {
  const object = { spec: { list: [{ a: '1' }] } }
  expect(compileSchema(schema).prune(object).value).toBe(object)
})
