/** Small valid objects; `change` replaces top-level fields. */

export const configMap = (name: string, data: Record<string, string> = { a: '1' }): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
})

export const pod = (name: string, change: { metadata?: object; spec?: object } = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, ...change.metadata },
  spec: { containers: [{ name: 'main', image: 'example/one:1' }], ...change.spec },
})

export const sandboxes = 'agents.x-k8s.io/v1beta1'
export const extensions = 'extensions.agents.x-k8s.io/v1beta1'

export const sandbox = (name: string, change: { metadata?: object; spec?: object } = {}): object => ({
  apiVersion: sandboxes,
  kind: 'Sandbox',
  metadata: { name, ...change.metadata },
  spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'example/one:1' }] } }, ...change.spec },
})

export const pool = (name: string, replicas = 1): object => ({
  apiVersion: extensions,
  kind: 'SandboxWarmPool',
  metadata: { name },
  spec: { replicas, sandboxTemplateRef: { name: 'none' } },
})

export const template = (name: string): object => ({
  apiVersion: extensions,
  kind: 'SandboxTemplate',
  metadata: { name },
  spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'example/one:1' }] } } },
})

export const lease = (name: string, holder: string): object => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name },
  spec: { holderIdentity: holder, leaseDurationSeconds: 15, renewTime: '2026-01-02T03:04:05.678901Z' },
})

export interface CrdShape {
  plural: string
  group: string
  kind: string
  schema: object
  scope?: 'Namespaced' | 'Cluster'
  version?: object
  versions?: object[]
  spec?: object
}

/** A CRD with one version `v1`, or the versions given. */
export function crd({ plural, group, kind, schema, scope = 'Namespaced', version, versions, spec }: CrdShape): object {
  const one = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema }, ...version }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope,
      names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
      versions: versions ?? [one],
      ...spec,
    },
  }
}
