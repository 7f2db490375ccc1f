/** Enough of Kubernetes' protobuf encoding to write a few bodies by hand. Field numbers are upstream's. */

export const protobuf = 'application/vnd.kubernetes.protobuf'

const varint = (value: number): number[] => {
  const bytes: number[] = []
  let rest = value
  while (rest > 127) {
    bytes.push((rest & 127) | 128)
    rest >>>= 7
  }
  return [...bytes, rest]
}
const number = (field: number, value: number): Buffer => Buffer.from([...varint(field << 3), ...varint(value)])
const bytes = (field: number, value: Uint8Array | string): Buffer => {
  const data = Buffer.from(value)
  return Buffer.concat([Buffer.from([...varint((field << 3) | 2), ...varint(data.length)]), data])
}
const message = (field: number, ...parts: Uint8Array[]): Buffer => bytes(field, Buffer.concat(parts))
const entries = (field: number, values: Readonly<Record<string, string>>): Buffer =>
  Buffer.concat(Object.entries(values).map(([key, value]) => message(field, bytes(1, key), bytes(2, value))))

/** The four magic bytes and the wrapper that names the type. */
export function envelope(apiVersion: string, kind: string, raw: Uint8Array): Uint8Array {
  const wrapper = Buffer.concat([message(1, bytes(1, apiVersion), bytes(2, kind)), bytes(2, raw)])
  return Buffer.concat([Buffer.from([0x6b, 0x38, 0x73, 0x00]), wrapper])
}

/** A kind's body in both encodings. */
export interface Sample {
  readonly kind: string
  readonly plural: string
  json(name: string): object
  protobuf(name: string): Uint8Array
}

const labels = { app: 'x' }
const metadata = (name: string): Buffer => message(1, bytes(1, name), entries(11, labels))
const jsonMetadata = (name: string): object => ({ name, labels })

export const samples: readonly Sample[] = [
  {
    kind: 'ConfigMap',
    plural: 'configmaps',
    json: (name) => ({ metadata: jsonMetadata(name), data: { a: '1', b: 'two' } }),
    protobuf: (name) => envelope('v1', 'ConfigMap', Buffer.concat([metadata(name), entries(2, { a: '1', b: 'two' })])),
  },
  {
    kind: 'Secret',
    plural: 'secrets',
    json: (name) => ({
      metadata: jsonMetadata(name),
      type: 'Opaque',
      data: { key: Buffer.from('value').toString('base64') },
    }),
    protobuf: (name) =>
      envelope('v1', 'Secret', Buffer.concat([metadata(name), entries(2, { key: 'value' }), bytes(3, 'Opaque')])),
  },
  {
    kind: 'Pod',
    plural: 'pods',
    json: (name) => ({ metadata: jsonMetadata(name), spec: podSpec }),
    protobuf: (name) => envelope('v1', 'Pod', Buffer.concat([metadata(name), message(2, podSpecBytes())])),
  },
]

const podSpec = {
  volumes: [{ name: 'scratch', emptyDir: {} }],
  containers: [
    {
      name: 'main',
      image: 'example/one:1',
      env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'secret', key: 'key' } } }],
      volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }],
      readinessProbe: { httpGet: { path: '/ready', port: 8080 }, initialDelaySeconds: 3 },
    },
  ],
  restartPolicy: 'Never',
}

function podSpecBytes(): Buffer {
  const volume = message(1, bytes(1, 'scratch'), message(2, message(2)))
  const secretKeyRef = message(4, message(1, bytes(1, 'secret')), bytes(2, 'key'))
  const env = message(7, bytes(1, 'KEY'), bytes(2, ''), message(3, secretKeyRef))
  const mount = message(9, bytes(1, 'scratch'), number(2, 0), bytes(3, '/scratch'), bytes(4, ''))
  const httpGet = message(2, bytes(1, '/ready'), message(2, number(1, 0), number(2, 8080), bytes(3, '')))
  const probe = message(11, message(1, httpGet), number(2, 3))
  const container = message(2, bytes(1, 'main'), bytes(2, 'example/one:1'), env, mount, probe)
  return Buffer.concat([volume, container, bytes(3, 'Never')])
}

export const namespaceBody = (name: string): Uint8Array => envelope('v1', 'Namespace', metadata(name))

export function deploymentBody(name: string, replicas: number): Uint8Array {
  const selector = message(2, entries(1, labels))
  const template = message(3, message(1, entries(11, labels)), message(2, message(2, bytes(1, 'c'), bytes(2, 'i'))))
  return envelope(
    'apps/v1',
    'Deployment',
    Buffer.concat([metadata(name), message(2, number(1, replicas), selector, template)]),
  )
}

export const deleteOptionsBody = (uid: string): Uint8Array => envelope('v1', 'DeleteOptions', message(2, bytes(1, uid)))
