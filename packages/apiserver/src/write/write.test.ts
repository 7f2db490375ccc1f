import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  APPLY,
  configMap,
  configMaps,
  JSON_PATCH,
  MERGE,
  openServer,
  pod,
  pods,
  type ServerCaller,
  STRATEGIC,
} from '../testing/server-caller.test-suite.js'

let api: ServerCaller
beforeAll(async () => {
  api = await openServer()
})
afterAll(() => api.server.close())

describe('create', () => {
  it('31: sets uid, time, version and generation, and leaves the body alone', async () => {
    const body = pod('fresh')
    const { status, value } = await api.call('POST', pods, body)
    expect(status).toBe(201)
    expect(value.metadata).toMatchObject({ name: 'fresh', namespace: 'default', generation: 1 })
    expect(value.metadata.uid).toMatch(/^[0-9a-f-]{36}$/)
    expect(value.status).toEqual({ phase: 'Pending', qosClass: 'BestEffort' })
    expect(Object.isFrozen(value.spec.containers)).toBe(true)
    expect(body).toEqual(pod('fresh'))
  })

  it('34: two generated names differ and use the safe alphabet', async () => {
    const names = []
    for (let round = 0; round < 2; round++) {
      const { value } = await api.call('POST', configMaps, { metadata: { generateName: 'g-' } })
      names.push(value.metadata.name)
    }
    expect(new Set(names).size).toBe(2)
    for (const name of names) expect(name).toMatch(/^g-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
  })

  it.each<{ what: string; url?: string; body: object; status: number; says: string | RegExp }>([
    {
      what: '33: a name that is taken',
      body: configMap('taken'),
      status: 409,
      says: 'configmaps "taken" already exists',
    },
    {
      what: '35: a version',
      body: { metadata: { name: 'v', resourceVersion: '5' } },
      status: 400,
      says: /resourceVersion should not be set/,
    },
    {
      what: '36: another namespace',
      body: { metadata: { name: 'v', namespace: 'x' } },
      status: 400,
      says: /does not match the namespace/,
    },
    {
      what: '37: a missing namespace',
      url: '/api/v1/namespaces/no/configmaps',
      body: configMap('v'),
      status: 404,
      says: 'namespaces "no" not found',
    },
    {
      what: '38: a bad name',
      body: configMap('No_Good'),
      status: 422,
      says: /metadata.name: Invalid value: "No_Good"/,
    },
    { what: 'no name at all', body: { metadata: {} }, status: 422, says: /name or generateName is required/ },
    {
      what: 'a wrong kind',
      body: { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'v' } },
      status: 400,
      says: /expected kind/,
    },
    {
      what: 'a value of the wrong type',
      body: configMap('v', { data: { a: 1 } }),
      status: 400,
      says: /cannot unmarshal number/,
    },
    {
      what: '49: too many annotations',
      body: { metadata: { name: 'v', annotations: { a: 'x'.repeat(262_144) } } },
      status: 422,
      says: /Too long/,
    },
  ])('$what is refused with $status', async ({ url = configMaps, body, status, says }) => {
    if (status === 409) await api.call('POST', configMaps, body)
    const answer = await api.call('POST', url, body)
    expect(answer.status).toBe(status)
    expect(answer.value.message).toMatch(says)
    expect(answer.value.code).toBe(status)
  })

  it('19: unknown fields are refused when strict, warned about otherwise, and never stored', async () => {
    const body = pod('odd', { nodeNmae: 'x' })
    const strict = await api.call('POST', `${pods}?fieldValidation=Strict`, body)
    expect(strict.value.message).toContain('strict decoding error: unknown field "spec.nodeNmae"')
    const warned = await api.call('POST', pods, body)
    expect(warned.response.headers.warning).toBe('299 - "unknown field \\"spec.nodeNmae\\""')
    expect(warned.value.spec).not.toHaveProperty('nodeNmae')
  })

  it('50: a dry run leaves no trace', async () => {
    const before = (await api.call('GET', configMaps)).value.metadata.resourceVersion
    expect((await api.call('POST', `${configMaps}?dryRun=All`, configMap('dry'))).status).toBe(201)
    expect((await api.call('GET', `${configMaps}/dry`)).status).toBe(404)
    expect((await api.call('GET', configMaps)).value.metadata.resourceVersion).toBe(before)
  })
})

describe('update', () => {
  it('40: a stale version is a conflict', async () => {
    const { value: old } = await api.call('POST', configMaps, configMap('stale'))
    await api.call('PUT', `${configMaps}/stale`, configMap('stale', { data: { x: '1' } }))
    const { status, value } = await api.call('PUT', `${configMaps}/stale`, { ...old, data: { x: '2' } })
    expect(status).toBe(409)
    expect(value.message).toMatch(
      /the object has been modified; please apply your changes to the latest version and try again$/,
    )
  })

  it('42: an equal object writes nothing', async () => {
    const { value } = await api.call('POST', configMaps, configMap('same', { data: { x: '1' } }))
    const again = await api.call('PUT', `${configMaps}/same`, configMap('same', { data: { x: '1' } }))
    expect(again.value.metadata.resourceVersion).toBe(value.metadata.resourceVersion)
  })

  it('45: the main resource cannot change status, and status cannot change the spec', async () => {
    await api.call('POST', pods, pod('isolated'))
    const main = await api.call('PATCH', `${pods}/isolated`, { status: { phase: 'Running' } }, MERGE)
    expect(main.value.status.phase).toBe('Pending')
    const patch = { status: { phase: 'Running' }, spec: { nodeName: 'n' } }
    const status = await api.call('PATCH', `${pods}/isolated/status`, patch, MERGE)
    expect(status.value.status.phase).toBe('Running')
    expect(status.value.spec.nodeName).toBeUndefined()
    expect(status.value.metadata.generation).toBe(1)
  })

  it('48: PUT creates a lease but no config map', async () => {
    const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases/l'
    expect((await api.call('PUT', leases, { metadata: { name: 'l' }, spec: {} })).status).toBe(201)
    const again = await api.call('PUT', leases, { metadata: { name: 'l' }, spec: {} })
    expect([again.status, again.value.message]).toEqual([
      422,
      expect.stringContaining('must be specified for an update'),
    ])
    const absent = await api.call('PUT', `${configMaps}/absent`, configMap('absent'))
    expect([absent.status, absent.value.message]).toEqual([404, 'configmaps "absent" not found'])
  })

  it('57: fifty parallel patches all land', async () => {
    await api.call('POST', configMaps, configMap('busy'))
    const patches = Array.from({ length: 50 }, (_, index) =>
      api.call('PATCH', `${configMaps}/busy`, { data: { [`k${index}`]: 'v' } }, MERGE),
    )
    await Promise.all(patches)
    const { value } = await api.call('GET', `${configMaps}/busy`)
    expect(Object.keys(value.data)).toHaveLength(50)
  })

  it('an immutable secret keeps its data', async () => {
    const secrets = '/api/v1/namespaces/default/secrets'
    const { value } = await api.call('POST', secrets, {
      metadata: { name: 's' },
      stringData: { a: 'b' },
      immutable: true,
    })
    expect(value.data).toEqual({ a: 'Yg==' })
    const changed = await api.call('PATCH', `${secrets}/s`, { data: { a: 'Yw==' } }, MERGE)
    expect([changed.status, changed.value.message]).toEqual([
      422,
      expect.stringContaining('immutable when `immutable` is set'),
    ])
  })
})

describe('patch', () => {
  it.each<{ what: string; type: string; patch: object; status: number; says?: string }>([
    { what: '51: a merge patch', type: MERGE, patch: { data: { a: null, c: '3' } }, status: 200 },
    {
      what: '52: a merge patch on a stale version',
      type: MERGE,
      patch: { metadata: { resourceVersion: '1' } },
      status: 409,
      says: 'the object has been modified',
    },
    { what: '53: a JSON patch', type: JSON_PATCH, patch: [{ op: 'add', path: '/data/d', value: '4' }], status: 200 },
    {
      what: '53: a JSON patch whose test fails',
      type: JSON_PATCH,
      patch: [{ op: 'test', path: '/data/c', value: '9' }],
      status: 422,
      says: 'the server rejected our request due to an error in our request',
    },
    {
      what: '53: a JSON patch that is no list',
      type: JSON_PATCH,
      patch: {},
      status: 400,
      says: 'a list of operations',
    },
    {
      what: 'a patch without a patch type',
      type: 'application/json',
      patch: {},
      status: 415,
      says: 'accepted media types include: application/json-patch+json',
    },
    {
      what: '63: an apply without a manager',
      type: APPLY,
      patch: { apiVersion: 'v1', kind: 'ConfigMap' },
      status: 422,
      says: 'fieldManager: Required value',
    },
  ])('$what is answered with $status', async ({ type, patch, status, says }) => {
    await api.call('POST', configMaps, configMap('patched', { data: { a: '1', b: '2' } }))
    const answer = await api.call('PATCH', `${configMaps}/patched`, patch, type)
    expect(answer.status).toBe(status)
    if (says) expect(answer.value.message).toContain(says)
  })

  it('54: a strategic patch merges containers by name', async () => {
    await api.call('POST', pods, pod('strategic'))
    const patch = { spec: { containers: [{ name: 'c', image: 'example/c:2' }] } }
    const { value } = await api.call('PATCH', `${pods}/strategic`, patch, STRATEGIC)
    expect(value.spec.containers).toHaveLength(1)
    expect(value.spec.containers[0]).toMatchObject({ image: 'example/c:2', imagePullPolicy: 'IfNotPresent' })
    expect(value.metadata.generation).toBe(2)
  })
})

describe('server-side apply', () => {
  const apply = (manager: string, data: object, force = false): ReturnType<ServerCaller['call']> => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' }, data }
    return api.call('PATCH', `${configMaps}/applied?fieldManager=${manager}${force ? '&force=true' : ''}`, body, APPLY)
  }

  it('59-61, 67: creates, removes what is no longer sent, conflicts, takes over, and rests', async () => {
    expect((await apply('one', { a: '1', b: '2' })).status).toBe(201)
    expect((await apply('one', { a: '1' })).value.data).toEqual({ a: '1' })
    const refused = await apply('two', { a: '9' })
    expect(refused.status).toBe(409)
    expect(refused.value.details.causes[0]).toMatchObject({ reason: 'FieldManagerConflict', field: '.data.a' })
    const forced = await apply('two', { a: '9' }, true)
    expect(forced.value.data).toEqual({ a: '9' })
    const again = await apply('two', { a: '9' })
    expect(again.value.metadata.resourceVersion).toBe(forced.value.metadata.resourceVersion)
  })
})

it.each([
  { fieldValidation: 'Strict', status: 422, warning: undefined, says: /json patch unknown field "\[0\]\.x"/ },
  { fieldValidation: 'Warn', status: 200, warning: '299 - "json patch unknown field \\"[0].x\\""' },
  { fieldValidation: 'Ignore', status: 200, warning: undefined },
])(
  'a JSON patch with a member no operation has: $fieldValidation',
  async ({ fieldValidation, status, warning, says }) => {
    await api.call('POST', configMaps, configMap('members'))
    const operations = [{ op: 'add', path: '/metadata/labels', value: { a: 'b' }, x: 1 }]
    const url = `${configMaps}/members?dryRun=All&fieldValidation=${fieldValidation}`
    const { response, value } = await api.call('PATCH', url, operations, JSON_PATCH)
    expect([response.status, response.headers.warning]).toEqual([status, warning])
    if (says) expect(value.message).toMatch(says)
  },
)
