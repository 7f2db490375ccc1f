import { describe, expect, it } from 'vitest'
import { checkStructural, type JsonRecord, type JsonSchema, validateCrd } from './index.js'

const root = (x: JsonSchema): JsonSchema => ({ type: 'object', properties: { x } })

describe('a schema is structural unless', () => {
  it.each<{ because: string; schema: JsonSchema; field: string }>([
    { because: 'the root has no type', schema: {}, field: 'openAPIV3Schema.type' },
    { because: 'a field has no type', schema: root({}), field: 'openAPIV3Schema.properties[x].type' },
    { because: 'a list has no items', schema: root({ type: 'array' }), field: 'openAPIV3Schema.properties[x].items' },
    {
      because: 'items have no type',
      schema: root({ type: 'array', items: {} }),
      field: 'openAPIV3Schema.properties[x].items.type',
    },
    {
      because: 'a junctor has a type',
      schema: root({ type: 'string', anyOf: [{ type: 'string' }] }),
      field: 'openAPIV3Schema.properties[x].anyOf[0].type',
    },
    {
      because: 'a junctor has a default',
      schema: root({ type: 'string', oneOf: [{ default: 'a' }] }),
      field: 'openAPIV3Schema.properties[x].oneOf[0].default',
    },
    {
      because: 'it refers elsewhere',
      schema: root({ type: 'string', $ref: '#/a' }),
      field: 'openAPIV3Schema.properties[x].$ref',
    },
    {
      because: 'items are to be unique',
      schema: root({ type: 'array', items: { type: 'string' }, uniqueItems: true }),
      field: 'openAPIV3Schema.properties[x].uniqueItems',
    },
    { because: 'a type is unknown', schema: root({ type: 'colour' }), field: 'openAPIV3Schema.properties[x].type' },
    {
      because: 'a default is not of its type',
      schema: root({ type: 'string', default: 5 }),
      field: 'openAPIV3Schema.properties[x].default',
    },
    {
      because: 'a default has a field nobody knows',
      schema: root({ type: 'object', properties: { a: { type: 'string' } }, default: { b: 1 } }),
      field: 'openAPIV3Schema.properties[x].default',
    },
    {
      because: 'a key of a list map may be absent',
      schema: root({
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        items: { type: 'object', properties: { name: { type: 'string' } } },
      }),
      field: 'openAPIV3Schema.properties[x].items.properties[name].default',
    },
  ])('$because', ({ schema, field }) => {
    expect(checkStructural(schema).map((error) => error.field)).toContain(field)
  })

  it('accepts the customary spelling of int-or-string', () => {
    const schema = root({ 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] })
    expect(checkStructural(schema)).toEqual([])
  })
})

describe('a CustomResourceDefinition is refused when', () => {
  const version = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }
  const spec = {
    group: 'example.org',
    scope: 'Namespaced',
    names: { plural: 'things', singular: 'x', kind: 'Thing', listKind: 'XList' },
    versions: [version],
  }
  const crd = (change: JsonRecord): JsonRecord => ({
    metadata: { name: 'things.example.org' },
    spec: { ...spec, ...change },
  })

  it('nothing: a plain one passes', () => {
    expect(validateCrd(crd({}))).toEqual([])
  })

  it.each<{ because: string; change: JsonRecord; field: string }>([
    { because: 'its name is not plural.group', change: { group: 'other.org' }, field: 'metadata.name' },
    { because: 'its scope is unknown', change: { scope: 'Galaxy' }, field: 'spec.scope' },
    { because: 'it has no version', change: { versions: [] }, field: 'spec.versions' },
    { because: 'no version is stored', change: { versions: [{ ...version, storage: false }] }, field: 'spec.versions' },
    {
      because: 'a version has no schema',
      change: { versions: [{ ...version, schema: {} }] },
      field: 'spec.versions[0].schema.openAPIV3Schema',
    },
    {
      because: 'a schema is not structural',
      change: { versions: [{ ...version, schema: { openAPIV3Schema: { type: 'object', properties: { a: {} } } } }] },
      field: 'spec.validation.openAPIV3Schema.properties[a].type',
    },
    {
      because: 'a column has an unknown type',
      change: { versions: [{ ...version, additionalPrinterColumns: [{ name: 'a', type: 'colour', jsonPath: '.a' }] }] },
      field: 'spec.additionalPrinterColumns[0].type',
    },
    {
      because: 'scale points outside spec',
      change: {
        versions: [
          { ...version, subresources: { scale: { specReplicasPath: '.x', statusReplicasPath: '.status.r' } } },
        ],
      },
      field: 'spec.subresources.scale.specReplicasPath',
    },
    {
      because: 'its conversion is unknown',
      change: { conversion: { strategy: 'Magic' } },
      field: 'spec.conversion.strategy',
    },
  ])('$because', ({ change, field }) => {
    expect(validateCrd(crd(change)).map((error) => error.field)).toContain(field)
  })
})
