import { describe, expect, it } from 'vitest'
import { fieldTable, pointerMembers } from './field-table.js'

const core = (name: string) => fieldTable.type(`io.k8s.api.core.v1.${name}`)

describe('the field table', () => {
  it('decodes every type, and every reference leads to one', () => {
    const targets = new Set<string>()
    for (const name of fieldTable.names()) {
      for (const field of fieldTable.type(name).fields) {
        let type = field.type
        while (type.kind === 'array' || type.kind === 'map') type = type.kind === 'array' ? type.items : type.values
        if (type.kind === 'ref') targets.add(type.ref)
      }
    }
    expect([...targets].filter((name) => !fieldTable.find(name))).toEqual([])
    expect(fieldTable.names().length).toBeGreaterThan(300)
  })

  it('knows merge keys, list types, defaults, enums and protobuf numbers', () => {
    expect(core('PodSpec').field('volumes')).toMatchObject({
      listType: 'map',
      listMapKeys: ['name'],
      patchStrategy: ['merge', 'retainKeys'],
      patchMergeKey: 'name',
      protoNumber: 1,
      required: false,
    })
    expect(core('Container').field('ports')).toMatchObject({
      listMapKeys: ['containerPort', 'protocol'],
      patchMergeKey: 'containerPort',
    })
    expect(core('ContainerPort').field('protocol')).toMatchObject({ default: 'TCP', enum: ['SCTP', 'TCP', 'UDP'] })
    expect(core('PodSpec').field('terminationGracePeriodSeconds')).toMatchObject({ pointer: true, protoNumber: 4 })
    expect(core('ResourceRequirements').field('limits')?.type).toEqual({
      kind: 'map',
      values: { kind: 'scalar', scalar: 'quantity' },
    })
    expect(core('SecretReference').atomic).toBe(true)
  })

  it('shows inlined structs flat in JSON and as messages in protobuf', () => {
    expect(core('Volume').field('emptyDir')).toBeDefined()
    expect(core('Volume').protoFields.get(2)).toEqual({ inlined: 'io.k8s.api.core.v1.VolumeSource', protoNumber: 2 })
    expect(core('Volume').protoFields.get(1)).toMatchObject({ name: 'name' })
    expect(core('EphemeralContainer').field('image')).toBeDefined()
  })

  it.each([
    ['v1', 'Pod', 'io.k8s.api.core.v1.Pod'],
    ['apps/v1', 'Deployment', 'io.k8s.api.apps.v1.Deployment'],
    ['rbac.authorization.k8s.io/v1', 'Role', 'io.k8s.api.rbac.v1.Role'],
    [
      'apiextensions.k8s.io/v1',
      'CustomResourceDefinition',
      'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition',
    ],
    ['apps/v1', 'DeleteOptions', 'io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions'],
    ['v1', 'PodSpec', undefined],
    ['core.example.com/v1', 'Pod', undefined],
    ['v1', 'constructor', undefined],
  ])('%s %s is %s', (apiVersion, kind, name) => {
    expect(fieldTable.forKind(apiVersion, kind)?.name).toBe(name)
  })

  it('refuses unknown names by name', () => {
    expect(() => fieldTable.type('io.k8s.Nothing')).toThrow(/io.k8s.Nothing/)
    expect(fieldTable.find('toString')).toBeUndefined()
  })

  it('reads the same pointer members off its text as off its types', () => {
    const fields = fieldTable.names().flatMap((name) => fieldTable.type(name).fields)
    const decoded = fields.filter((field) => field.pointer && field.type.kind === 'ref').map((field) => field.name)
    expect([...pointerMembers()].sort()).toEqual([...new Set(decoded)].sort())
    expect(pointerMembers().has('emptyDir')).toBe(true)
  })
})
