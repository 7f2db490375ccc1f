/** One request of the comparison; `{ns}` stands for a namespace of its own. */
export interface Asked {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  /** Content type of the body; JSON without it. */
  readonly type?: string
  readonly accept?: string
}

const patchTypes = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

export const core = '/api/v1/namespaces/{ns}'
export const group = (apiVersion: string): string => `/apis/${apiVersion}/namespaces/{ns}`
const dry = '?dryRun=All&fieldManager=tester'

export const get = (path: string, accept?: string): Asked => ({ method: 'GET', path, ...(accept ? { accept } : {}) })
export const create = (path: string, body: unknown): Asked => ({ method: 'POST', path: `${path}${dry}`, body })
export const store = (path: string, body: unknown): Asked => ({
  method: 'POST',
  path: `${path}?fieldManager=tester`,
  body,
})
export const patch = (path: string, kind: keyof typeof patchTypes, body: unknown): Asked => ({
  method: 'PATCH',
  path: `${path}${dry}`,
  body,
  type: patchTypes[kind],
})

export const container = { name: 'c', image: 'example/c:1' }
export const pod = (spec: object, metadata: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'one', ...metadata },
  spec: { containers: [container], ...spec },
})
export const of = (apiVersion: string, kind: string, rest: object = {}): object => ({
  apiVersion,
  kind,
  metadata: { name: 'one' },
  ...rest,
})

export const stored = {
  configMap: `${core}/configmaps/kept`,
  pod: `${core}/pods/kept`,
  lease: `${group('coordination.k8s.io/v1')}/leases/kept`,
}
export const sandboxes = `${group('agents.x-k8s.io/v1beta1')}/sandboxes`
export const sandbox = {
  ...of('agents.x-k8s.io/v1beta1', 'Sandbox'),
  metadata: { name: 'kept' },
  spec: { podTemplate: { spec: { containers: [container] } } },
}
