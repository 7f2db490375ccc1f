import { describe, expect, it } from 'vitest'
import { type OpenApiKind, openApiCatalog, openApiDocument } from './index.js'

const pods: OpenApiKind = {
  group: '',
  version: 'v1',
  apiVersion: 'v1',
  kind: 'Pod',
  plural: 'pods',
  namespaced: true,
  typeName: 'io.k8s.api.core.v1.Pod',
}
const namespaces: OpenApiKind = {
  ...pods,
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
  typeName: 'io.k8s.api.core.v1.Namespace',
}
const things: OpenApiKind = {
  group: 'example.org',
  version: 'v1',
  apiVersion: 'example.org/v1',
  kind: 'Thing',
  plural: 'things',
  namespaced: true,
  schema: {
    type: 'object',
    properties: { spec: { type: 'object', description: 'what it is', properties: { a: { type: 'string' } } } },
  },
}

const core = openApiDocument('v1', [pods, namespaces, things])
const custom = openApiDocument('example.org/v1', [pods, things])

it('check 17: the patch operation of a kind says that the server validates fields, and takes no body', () => {
  expect(core.paths['/api/v1/namespaces/{name}']).toMatchObject({
    patch: {
      'x-kubernetes-group-version-kind': { group: '', version: 'v1', kind: 'Namespace' },
      parameters: expect.arrayContaining([expect.objectContaining({ name: 'fieldValidation', in: 'query' })]),
    },
  })
  expect(JSON.stringify(core)).not.toContain('requestBody')
  expect(JSON.stringify(core)).not.toContain('strategic-merge-patch')
})

describe('check 18: schemas', () => {
  it('of a kind carry its name as a list', () => {
    expect(core.components.schemas['io.k8s.api.core.v1.Pod']).toMatchObject({
      'x-kubernetes-group-version-kind': [{ group: '', version: 'v1', kind: 'Pod' }],
    })
    expect(custom.components.schemas['org.example.v1.Thing']).toMatchObject({
      'x-kubernetes-group-version-kind': [{ group: 'example.org', version: 'v1', kind: 'Thing' }],
      properties: { spec: { description: 'what it is' }, metadata: { $ref: expect.stringContaining('ObjectMeta') } },
    })
  })

  it.each([
    ['core', core],
    ['custom', custom],
  ] as const)('%s: every reference leads to a schema of the same document', (_name, document) => {
    const refs = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map((match) => match[1]!)
    expect(refs.length).toBeGreaterThan(0)
    expect(refs.filter((ref) => !document.components.schemas[ref])).toEqual([])
  })

  it('stay small', () => {
    expect(JSON.stringify(core).length).toBeLessThan(120_000)
  })
})

describe('check 16: the catalog', () => {
  const catalog = openApiCatalog([pods, namespaces, things])

  it('links every group-version, and each link loads', () => {
    const { paths } = catalog.index()
    expect(Object.keys(paths)).toEqual(['api/v1', 'apis/example.org/v1'])
    for (const [path, { serverRelativeURL }] of Object.entries(paths)) {
      const part = catalog.document(path)
      expect(serverRelativeURL).toBe(`/openapi/v3/${path}?hash=${part?.hash}`)
      expect(JSON.parse(new TextDecoder().decode(part?.json))).toHaveProperty('components')
    }
    expect(catalog.document('apis/none/v1')).toBeUndefined()
  })

  it('check 114: a changed schema has another hash, an unchanged one the same', () => {
    const changed = openApiCatalog([pods, namespaces, { ...things, schema: { type: 'object' } }])
    expect(changed.document('api/v1')?.hash).toBe(catalog.document('api/v1')?.hash)
    expect(changed.document('apis/example.org/v1')?.hash).not.toBe(catalog.document('apis/example.org/v1')?.hash)
  })
})
