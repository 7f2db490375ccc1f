import { type FieldType, fieldTable, type PodSpec } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { fieldClasses } from './field-classes.js'
import { fieldClass, refusedFields } from './refused-fields.js'

const podSpec = 'io.k8s.api.core.v1.PodSpec'

describe('the classes of PodSpec fields', () => {
  it('cover every field that can be reached from a PodSpec', () => {
    const { unclassed, fields } = walk()
    expect(unclassed).toEqual([])
    expect(fields.length).toBeGreaterThan(200)
  })

  it('name no field that the table does not have', () => {
    const { fields } = walk()
    const known = new Set(fields)
    const listed = Object.entries(fieldClasses).flatMap(([type, own]) =>
      Object.keys(own).map((name) => `${type}.${name}`),
    )
    expect(listed.filter((field) => !known.has(field))).toEqual([])
  })

  it('give a reason for everything that is not honoured', () => {
    const silent = Object.values(fieldClasses)
      .flatMap((own) => Object.values(own))
      .filter((entry) => entry.class !== 'honoured' && entry.reason.length < 10)
    expect(silent).toEqual([])
  })
})

const plain = { name: 'c', image: 'x', command: ['true'] }

describe('refusedFields', () => {
  it.each<{ when: string; spec: Partial<PodSpec>; refuses: string[] }>([
    { when: 'a plain pod asks for nothing special', spec: {}, refuses: [] },
    {
      when: 'host namespaces are named but off',
      spec: { hostNetwork: false, hostPID: false, hostIPC: false },
      refuses: [],
    },
    { when: 'the host network is asked for', spec: { hostNetwork: true }, refuses: ['spec.hostNetwork'] },
    {
      when: 'a directory of the host is mounted',
      spec: {
        volumes: [
          { name: 'v', emptyDir: {} },
          { name: 'h', hostPath: { path: '/etc' } },
        ],
      },
      refuses: ['spec.volumes[1].hostPath'],
    },
    {
      when: 'a container is privileged and adds a capability',
      spec: { containers: [{ ...plain, securityContext: { privileged: true, capabilities: { add: ['NET_ADMIN'] } } }] },
      refuses: ['spec.containers[0].securityContext.privileged', 'spec.containers[0].securityContext.capabilities.add'],
    },
    {
      when: 'the restricted security profile is written out',
      spec: {
        securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          {
            ...plain,
            securityContext: { allowPrivilegeEscalation: false, privileged: false, capabilities: { drop: ['ALL'] } },
          },
        ],
      },
      refuses: [],
    },
    {
      when: 'a seccomp profile of the host is named',
      spec: { securityContext: { seccompProfile: { type: 'Localhost', localhostProfile: 'p.json' } } },
      refuses: ['spec.securityContext.seccompProfile'],
    },
    {
      when: 'a port of the host is asked for',
      spec: { containers: [{ ...plain, ports: [{ containerPort: 80, hostPort: 80 }] }] },
      refuses: ['spec.containers[0].ports[0].hostPort'],
    },
    {
      when: 'a gRPC probe is set on an init container',
      spec: { initContainers: [{ ...plain, startupProbe: { grpc: { port: 1 } } }] },
      refuses: ['spec.initContainers[0].startupProbe.grpc'],
    },
    {
      when: 'the dns of a managed sandbox is set',
      spec: { dnsPolicy: 'None', dnsConfig: { nameservers: ['8.8.8.8'] }, automountServiceAccountToken: false },
      refuses: [],
    },
    { when: 'another operating system is asked for', spec: { os: { name: 'windows' } }, refuses: ['spec.os.name'] },
  ])('when $when', ({ spec, refuses }) => {
    expect(refusedFields({ containers: [plain], ...spec }).map((field) => field.path)).toEqual(refuses)
  })

  it('refuses a field that is in no table', () => {
    const spec = { containers: [plain], teleport: true } as PodSpec
    expect(refusedFields(spec)).toEqual([{ path: 'spec.teleport', reason: 'this node does not know it' }])
  })
})

function walk(): { unclassed: string[]; fields: string[] } {
  const unclassed: string[] = []
  const fields: string[] = []
  const seen = new Set<string>()
  const visit = (typeName: string): void => {
    if (seen.has(typeName)) return
    seen.add(typeName)
    const short = typeName.slice(typeName.lastIndexOf('.') + 1)
    for (const field of fieldTable.type(typeName).fields) {
      fields.push(`${short}.${field.name}`)
      const own = fieldClass(typeName, field.name)
      if (!own) unclassed.push(`${short}.${field.name}`)
      const target = referenced(field.type)
      if (target && own?.class === 'honoured') visit(target)
    }
  }
  visit(podSpec)
  return { unclassed, fields }
}

function referenced(type: FieldType): string | undefined {
  switch (type.kind) {
    case 'scalar':
      return undefined
    case 'ref':
      return type.ref
    case 'array':
      return referenced(type.items)
    case 'map':
      return referenced(type.values)
  }
}
