import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fieldTable } from './field-table.js'
import { validateKubernetesValue } from './validate-value.js'

const POD_SPEC = 'io.k8s.api.core.v1.PodSpec'
const container = { name: 'a', image: 'b' }

describe('validateKubernetesValue', () => {
  it('accepts a pod with everything in its place', () => {
    const spec = {
      containers: [
        {
          ...container,
          ports: [{ containerPort: 80 }, { containerPort: 80, protocol: 'UDP' }],
          resources: { limits: { cpu: 1, memory: '1Gi' } },
          livenessProbe: { httpGet: { port: 'http' } },
          command: null,
        },
      ],
      volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Gi' } }],
    }
    expect(validateKubernetesValue(POD_SPEC, spec, { unknownFields: true })).toEqual([])
  })

  it.each<{ that: string; spec: unknown; path: string; says: RegExp }>([
    { that: 'no containers', spec: {}, path: 'containers', says: /Required/ },
    { that: 'containers that are no list', spec: { containers: {} }, path: 'containers', says: /array, not object/ },
    {
      that: 'a container that is no object',
      spec: { containers: ['x'] },
      path: 'containers.0',
      says: /object, not string/,
    },
    { that: 'a nameless container', spec: { containers: [{}] }, path: 'containers.0.name', says: /Required/ },
    {
      that: 'two containers of one name',
      spec: { containers: [container, container] },
      path: 'containers.1',
      says: /Duplicate/,
    },
    {
      that: 'one port twice, once by default protocol',
      spec: { containers: [{ ...container, ports: [{ containerPort: 1 }, { containerPort: 1, protocol: 'TCP' }] }] },
      path: 'containers.0.ports.1',
      says: /Duplicate/,
    },
    {
      that: 'a quantity that is none',
      spec: { containers: [{ ...container, resources: { limits: { cpu: 'lots' } } }] },
      path: 'containers.0.resources.limits.cpu',
      says: /quantity/,
    },
    { that: 'a number as text', spec: { containers: [], priority: '5' }, path: 'priority', says: /32-bit/ },
    { that: 'a number too large', spec: { containers: [], priority: 2 ** 31 }, path: 'priority', says: /32-bit/ },
    { that: 'a text as number', spec: { containers: [], hostname: 5 }, path: 'hostname', says: /string, not number/ },
    {
      that: 'a label that is no text',
      spec: { containers: [], nodeSelector: { a: 1 } },
      path: 'nodeSelector.a',
      says: /string/,
    },
    {
      that: 'an unknown member',
      spec: { containers: [{ ...container, img: 'x' }] },
      path: 'containers.0.img',
      says: /unknown/,
    },
  ])('refuses $that', ({ spec, path, says }) => {
    const issues = validateKubernetesValue(POD_SPEC, spec, { unknownFields: true })
    expect(issues.map((issue) => issue.path.join('.'))).toEqual([path])
    expect(issues[0]?.message).toMatch(says)
  })

  it('leaves unknown members alone unless asked', () => {
    expect(validateKubernetesValue(POD_SPEC, { containers: [], future: 1 })).toEqual([])
  })

  it('answers issues for any JSON against any type, and never throws', () => {
    fc.assert(
      fc.property(fc.constantFrom(...fieldTable.names()), fc.jsonValue(), (name, value) => {
        expect(Array.isArray(validateKubernetesValue(name, value, { unknownFields: true }))).toBe(true)
      }),
    )
  })
})
