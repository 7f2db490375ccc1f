import { HttpClient, type Target } from '../harness/http-client.js'
import { configMap, lease, pod, pool, sandbox, template } from '../harness/objects.js'
import { deploymentBody, protobuf, samples } from '../harness/protobuf.js'

export interface WireRequest {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body?: string | Uint8Array
}

const json = 'application/json'
const namespace = 'default'

/** A valid request for every route and content type, with the objects they need in place. */
export async function recordedRequests(target: Target): Promise<WireRequest[]> {
  const collections: readonly { path: string; object: object }[] = [
    { path: `/api/v1/namespaces/${namespace}/configmaps`, object: configMap('fuzz') },
    { path: `/api/v1/namespaces/${namespace}/pods`, object: pod('fuzz') },
    { path: `/api/v1/namespaces/${namespace}/secrets`, object: { metadata: { name: 'fuzz' }, stringData: { a: 'b' } } },
    {
      path: `/api/v1/namespaces/${namespace}/services`,
      object: { metadata: { name: 'fuzz' }, spec: { ports: [{ port: 80 }] } },
    },
    { path: `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`, object: lease('fuzz', 'me') },
    { path: `/apis/agents.x-k8s.io/v1beta1/namespaces/${namespace}/sandboxes`, object: sandbox('fuzz') },
    {
      path: `/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/${namespace}/sandboxwarmpools`,
      object: pool('fuzz', 1),
    },
    {
      path: `/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/${namespace}/sandboxtemplates`,
      object: template('fuzz'),
    },
  ]
  const http = new HttpClient(target)
  try {
    for (const { path, object } of collections) (await http.call('POST', path, { body: object })).is(201)
  } finally {
    http.close()
  }
  return [
    ...collections.flatMap(({ path, object }) => requestsOf(path, object)),
    ...reads(),
    ...binaries(),
    ...reviews(),
  ]
}

function requestsOf(path: string, object: object): WireRequest[] {
  const text = JSON.stringify(object)
  const one = `${path}/fuzz`
  const patch = (type: string, body: string, query = ''): WireRequest => ({
    method: 'PATCH',
    path: `${one}${query}`,
    headers: { 'content-type': type },
    body,
  })
  const write = (method: string, to: string, type = json): WireRequest => ({
    method,
    path: to,
    headers: { 'content-type': type },
    body: text,
  })
  const read = (to: string, accept = json): WireRequest => ({ method: 'GET', path: to, headers: { accept } })
  return [
    write('POST', `${path}?dryRun=All&fieldValidation=Strict`),
    write('POST', `${path}?fieldManager=fuzz`),
    write('POST', path, 'application/yaml'),
    write('PUT', one),
    write('PUT', `${one}/status`),
    patch('application/merge-patch+json', '{"metadata":{"labels":{"a":"b"}}}'),
    patch('application/json-patch+json', '[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]'),
    patch('application/strategic-merge-patch+json', '{"metadata":{"annotations":{"a":"b"}}}'),
    patch('application/apply-patch+yaml', text, '?fieldManager=fuzz&force=true'),
    read(path),
    read(`${path}?limit=1&labelSelector=a%3Db&fieldSelector=metadata.name%3Dfuzz`),
    read(one, 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'),
    read(path, 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'),
    read(`${path}?watch=1&timeoutSeconds=1&resourceVersion=0&allowWatchBookmarks=true`),
    {
      method: 'DELETE',
      path: `${path}/none`,
      headers: { 'content-type': json },
      body: '{"propagationPolicy":"Background","gracePeriodSeconds":0}',
    },
    { method: 'DELETE', path: `${path}?dryRun=All&labelSelector=none%3Dnone`, headers: {} },
  ]
}

const reads = (): WireRequest[] =>
  [
    '/api',
    '/apis',
    '/api/v1',
    '/apis/apps/v1',
    '/version',
    '/openapi/v3',
    '/openapi/v3/api/v1',
    '/readyz',
    `/api/v1/namespaces/${namespace}`,
    `/api/v1/namespaces/${namespace}/pods/fuzz/log?tailLines=3`,
  ].map((path) => ({ method: 'GET', path, headers: { accept: json } }))

const binaries = (): WireRequest[] => [
  ...samples.map((sample) => ({
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/${sample.plural}`,
    headers: { 'content-type': protobuf },
    body: sample.protobuf('fuzz-binary'),
  })),
  {
    method: 'POST',
    path: `/apis/apps/v1/namespaces/${namespace}/deployments`,
    headers: { 'content-type': protobuf },
    body: deploymentBody('fuzz', 1),
  },
]

function reviews(): WireRequest[] {
  const review = (path: string, body: object): WireRequest => ({
    method: 'POST',
    path,
    headers: { 'content-type': json },
    body: JSON.stringify(body),
  })
  return [
    review('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      spec: { resourceAttributes: { verb: 'get', resource: 'pods' } },
    }),
    review('/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: 'x' } }),
    review('/api/v1/namespaces/default/serviceaccounts/default/token', { spec: { expirationSeconds: 600 } }),
    review('/api/v1/namespaces/default/pods/none/eviction', {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'none' },
    }),
  ]
}

/** A generator that repeats itself for the same seed (mulberry32's recurrence). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const strange: readonly unknown[] = [
  null,
  '',
  'x'.repeat(300),
  '\u0000',
  -1,
  0,
  1e21,
  3.7,
  true,
  [],
  {},
  [null],
  { a: null },
  '__proto__',
  '😀',
  '2026-99-99T00:00:00Z',
  '9'.repeat(30),
]
const queries = [
  'watch=maybe',
  'timeoutSeconds=1',
  'limit=-1',
  'limit=9999999999999999999',
  'continue=%00',
  'resourceVersion=abc',
  'resourceVersion=-5',
  'resourceVersionMatch=Never',
  'labelSelector=((',
  'labelSelector=a%3Db%2C%2C',
  'fieldSelector=metadata.name%3D%5C',
  'fieldManager=%00',
  'force=perhaps',
  'dryRun=',
  'fieldValidation=Loud',
  'propagationPolicy=Never',
  'gracePeriodSeconds=x',
  'pretty=1',
  'sendInitialEvents=1',
  'includeObject=All',
]
const types = [
  json,
  'application/yaml',
  'application/merge-patch+json',
  'application/json-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
  protobuf,
  'application/cbor',
  'text/plain',
  'nonsense',
  'application/json; charset=latin1',
]
const accepts = [
  json,
  '*/*',
  'application/json;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=Nothing;v=v9',
  ';;;',
  'text/html',
  protobuf,
  'application/yaml',
]

/** One or two changes to a valid request: its path, its query, its headers or its body. */
export function mutate(request: WireRequest, random: () => number): WireRequest {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const once = (from: WireRequest): WireRequest => {
    const choice = random()
    if (choice < 0.2) return { ...from, path: withQuery(from.path, pick(queries)) }
    if (choice < 0.3) return { ...from, headers: { ...from.headers, accept: pick(accepts) } }
    if (choice < 0.4 && from.body !== undefined)
      return { ...from, headers: { ...from.headers, 'content-type': pick(types) } }
    if (choice < 0.48) return { ...from, path: changedPath(from.path, random) }
    if (choice < 0.52) return { ...from, method: pick(['GET', 'PUT', 'POST', 'PATCH', 'DELETE']) }
    return from.body === undefined
      ? { ...from, path: withQuery(from.path, pick(queries)) }
      : { ...from, body: changedBody(from.body, random) }
  }
  const first = once(request)
  const twice = random() < 0.4 ? once(first) : first
  // A watch must end by itself, or the suite would wait for its hour.
  return twice.path.includes('watch')
    ? { ...twice, path: withQuery(twice.path.replaceAll(/timeoutSeconds=\w*&?/g, ''), 'timeoutSeconds=1') }
    : twice
}

/** A deletion that would empty the ground under the other requests is only tried. */
export function harmless(request: WireRequest): WireRequest {
  if (request.method !== 'DELETE') return request
  return { ...request, path: withQuery(request.path.replaceAll(/dryRun=\w*/g, 'x=1'), 'dryRun=All') }
}

const withQuery = (path: string, query: string): string => `${path}${path.includes('?') ? '&' : '?'}${query}`

function changedPath(path: string, random: () => number): string {
  const [route = '', query = ''] = path.split('?')
  const parts = route.split('/')
  const index = 1 + Math.floor(random() * (parts.length - 1))
  const replacements = [
    '%2e%2e',
    '%00',
    '',
    'A_b',
    'x'.repeat(300),
    '%zz',
    'status',
    'scale',
    '~',
    '%F0%9F%98%80',
    'fuzz',
  ]
  parts[index] = replacements[Math.floor(random() * replacements.length)]!
  return query ? `${parts.join('/')}?${query}` : parts.join('/')
}

function changedBody(body: string | Uint8Array, random: () => number): string | Uint8Array {
  if (typeof body !== 'string') return changedBytes(body, random)
  if (random() < 0.2) return Buffer.from(changedBytes(Buffer.from(body), random))
  try {
    return JSON.stringify(changedValue(JSON.parse(body) as unknown, random))
  } catch {
    return changedBytes(Buffer.from(body), random)
  }
}

/** Walks down at random and puts something strange there. */
function changedValue(value: unknown, random: () => number): unknown {
  const odd = strange[Math.floor(random() * strange.length)]
  if (value === null || typeof value !== 'object' || random() < 0.15) return odd
  if (Array.isArray(value)) {
    const index = Math.floor(random() * value.length)
    return value.length === 0 ? [odd] : value.map((item, at) => (at === index ? changedValue(item, random) : item))
  }
  const keys = Object.keys(value)
  const record = value as Record<string, unknown>
  if (keys.length === 0 || random() < 0.15) return { ...record, unknown: odd }
  const key = keys[Math.floor(random() * keys.length)]!
  if (random() < 0.1) return Object.fromEntries(Object.entries(record).filter(([name]) => name !== key))
  return { ...record, [key]: changedValue(record[key], random) }
}

function changedBytes(bytes: Uint8Array, random: () => number): Uint8Array {
  const copy = Buffer.from(bytes)
  const at = Math.floor(random() * copy.length)
  if (random() < 0.3) return copy.subarray(0, at)
  if (copy.length > 0) copy[at] = Math.floor(random() * 256)
  return copy
}
