import { describe, expect, it } from 'vitest'
import { BuildError } from './object-builder.js'
import { SandboxBuilder } from './sandbox-builder.js'
import { SandboxClaimBuilder } from './sandbox-claim-builder.js'
import { SandboxTemplateBuilder } from './sandbox-template-builder.js'
import { SandboxWarmPoolBuilder } from './sandbox-warm-pool-builder.js'

function issuesOf(build: () => unknown): string[] {
  try {
    build()
  } catch (error) {
    expect(error).toBeInstanceOf(BuildError)
    return (error as BuildError).issues.map((issue) => issue.field)
  }
  return []
}

describe('builders', () => {
  it('S2-I8: a Sandbox with all its parts', () => {
    const sandbox = new SandboxBuilder('box')
      .namespace('team')
      .labels({ app: 'x' })
      .annotations({ note: 'y' })
      .image('busybox')
      .resources({ cpu: '500m', memory: '1Gi' })
      .runtimeClass('gvisor')
      .addVolumeClaimTemplate('data', '1Gi')
      .shutdownTime(new Date('2026-01-02T03:04:05Z'))
      .shutdownPolicy('Delete')
      .replicas(0)
      .taskContext({ taskId: 't1' })
      .build()
    expect(sandbox).toEqual({
      apiVersion: 'agents.x-k8s.io/v1beta1',
      kind: 'Sandbox',
      metadata: {
        name: 'box',
        namespace: 'team',
        labels: { app: 'x', 'corral.dev/task-id': 't1' },
        annotations: { note: 'y' },
      },
      spec: {
        podTemplate: {
          spec: {
            containers: [
              {
                name: 'sandbox',
                image: 'busybox',
                resources: { limits: { cpu: '500m', memory: '1Gi' }, requests: { cpu: '500m', memory: '1Gi' } },
              },
            ],
            runtimeClassName: 'gvisor',
          },
        },
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          },
        ],
        shutdownTime: '2026-01-02T03:04:05Z',
        shutdownPolicy: 'Delete',
        operatingMode: 'Suspended',
      },
    })
  })

  it('S2-I8: a template, a claim and a pool', () => {
    const template = new SandboxTemplateBuilder('t').image('a').networkPolicy({ egress: [{ ports: [{ port: 443 }] }] })
    expect(template.networkPolicyManagement('Unmanaged').build().spec).toMatchObject({
      networkPolicy: { egress: [{ ports: [{ port: 443 }] }] },
      networkPolicyManagement: 'Unmanaged',
    })
    const claim = new SandboxClaimBuilder('c').warmPool('p').env('A', 'b').lifecycle({ ttlSecondsAfterFinished: 5 })
    expect(claim.build().spec).toEqual({
      warmPoolRef: { name: 'p' },
      env: [{ name: 'A', value: 'b' }],
      lifecycle: { ttlSecondsAfterFinished: 5 },
    })
    expect(new SandboxClaimBuilder('c').templateRef('t').build().spec.warmPoolRef.name).toBe('shadow-pool-t')
    expect(
      new SandboxWarmPoolBuilder('p').sandboxTemplateRef('t').replicas(2).updateStrategy('Recreate').build().spec,
    ).toEqual({
      sandboxTemplateRef: { name: 't' },
      replicas: 2,
      updateStrategy: { type: 'Recreate' },
    })
  })

  it.each<{ that: string; build: () => unknown; fields: string[] }>([
    { that: 'a bad name', build: () => new SandboxBuilder('No_Good').image('a').build(), fields: ['metadata.name'] },
    {
      that: 'a bad label',
      build: () => new SandboxBuilder('a').image('a').labels({ x: '-' }).build(),
      fields: ['metadata.labels.x'],
    },
    { that: 'no image', build: () => new SandboxBuilder('a').build(), fields: ['spec.podTemplate.spec.containers'] },
    {
      that: 'resources that are none',
      build: () =>
        new SandboxBuilder('a')
          .image('a')
          .resources({ limits: { cpu: 'lots' } })
          .build(),
      fields: ['spec.podTemplate.spec.containers[0].resources.limits.cpu'],
    },
    {
      that: 'a time that is none',
      build: () => new SandboxBuilder('a').image('a').shutdownTime('soon').build(),
      fields: ['spec.shutdownTime'],
    },
    { that: 'a claim without pool', build: () => new SandboxClaimBuilder('a').build(), fields: ['spec.warmPoolRef'] },
    {
      that: 'a negative pool of no template',
      build: () => new SandboxWarmPoolBuilder('a').replicas(-1).build(),
      fields: ['spec.replicas', 'spec.sandboxTemplateRef'],
    },
  ])('refuses $that', ({ build, fields }) => {
    expect(issuesOf(build)).toEqual(fields)
  })

  it('hands out independent objects', () => {
    const builder = new SandboxBuilder('a').image('a')
    const first = builder.build()
    first.spec.podTemplate.spec.containers[0]!.image = 'changed'
    expect(builder.build().spec.podTemplate.spec.containers[0]?.image).toBe('a')
  })
})
