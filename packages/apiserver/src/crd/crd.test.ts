import { embeddedCrds } from '@corral/resources'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { APPLY, MERGE, openServer, type ServerCaller, STRATEGIC } from '../testing/server-caller.test-suite.js'

let api: ServerCaller
beforeAll(async () => {
  api = await openServer({ crds: embeddedCrds() })
})
afterAll(() => api.server.close())

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const widgets = '/apis/example.com/v1/namespaces/default/widgets'

const definition = (rule = "self.size != 'huge'"): object => ({
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
        },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                required: ['size'],
                properties: {
                  size: { type: 'string', enum: ['small', 'large', 'huge'] },
                  count: { type: 'integer', minimum: 1, default: 2 },
                  replicas: { type: 'integer' },
                },
                'x-kubernetes-validations': [{ rule, message: 'huge is too much' }],
              },
              status: { type: 'object', properties: { replicas: { type: 'integer' } } },
            },
          },
        },
      },
    ],
  },
})
const widget = (name: string, spec: object, extra: object = {}): object => ({
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name },
  spec,
  ...extra,
})

describe('a definition', () => {
  it('104: is established and served in the moment it is created', async () => {
    const { value, status } = await api.call('POST', definitions, definition())
    expect(status).toBe(201)
    expect(
      value.status.conditions.map((each: { type: string; status: string }) => `${each.type}=${each.status}`),
    ).toEqual(['NamesAccepted=True', 'Established=True'])
    expect((await api.call('GET', '/apis/example.com/v1')).value.resources[0].name).toBe('widgets')
    expect((await api.call('POST', widgets, widget('first', { size: 'small' }))).status).toBe(201)
  })

  it('105, 106: prunes unknown fields and fills in defaults', async () => {
    const { value } = await api.call('POST', widgets, widget('pruned', { size: 'small', wings: 2 }))
    expect(value.spec).toEqual({ size: 'small', count: 2 })
  })

  it('32, 46: needs apiVersion and kind, and drops the status of a new object', async () => {
    const bare = await api.call('POST', widgets, { metadata: { name: 'bare' } })
    expect([bare.status, bare.value.message]).toEqual([400, expect.stringMatching(/kind/i)])
    const { value } = await api.call('POST', widgets, widget('status', { size: 'small' }, { status: { replicas: 3 } }))
    expect(value.status).toBeUndefined()
  })

  it.each<{ what: string; spec: object; field: string }>([
    { what: 'a missing field', spec: {}, field: 'spec.size' },
    { what: 'a value outside the enumeration', spec: { size: 'tiny' }, field: 'spec.size' },
    { what: 'a number too small', spec: { size: 'small', count: 0 }, field: 'spec.count' },
    { what: '107: a broken rule', spec: { size: 'huge' }, field: 'spec' },
  ])('107: refuses $what', async ({ spec, field }) => {
    const { status, value } = await api.call('POST', widgets, widget('bad', spec))
    expect(status).toBe(422)
    expect(value.details.causes[0].field).toBe(field)
  })

  it('44: counts generations of the spec only', async () => {
    const url = `${widgets}/first`
    const generation = async (patch: object, at = url): Promise<number> =>
      (await api.call('PATCH', at, patch, MERGE)).value.metadata.generation
    expect(await generation({ metadata: { labels: { a: 'b' } } })).toBe(1)
    expect(await generation({ status: { replicas: 1 } }, `${url}/status`)).toBe(1)
    expect(await generation({ spec: { size: 'large' } })).toBe(2)
  })

  it('41, 55: wants a version on PUT and no strategic patch', async () => {
    const put = await api.call('PUT', `${widgets}/first`, widget('first', { size: 'small' }))
    expect([put.status, put.value.message]).toEqual([422, expect.stringContaining('metadata.resourceVersion')])
    const patched = await api.call('PATCH', `${widgets}/first`, {}, STRATEGIC)
    expect([patched.status, patched.value.message]).toEqual([415, expect.stringContaining('accepted media types')])
  })

  it('112: scales', async () => {
    const { value } = await api.call('PATCH', `${widgets}/first/scale`, { spec: { replicas: 4 } }, MERGE)
    expect(value).toMatchObject({ kind: 'Scale', apiVersion: 'autoscaling/v1', spec: { replicas: 4 } })
    expect((await api.call('GET', `${widgets}/first`)).value.spec.replicas).toBe(4)
    const stale = { ...value, metadata: { ...value.metadata, resourceVersion: '1' } }
    const refused = await api.call('PUT', `${widgets}/first/scale`, stale)
    expect([refused.status, refused.value.message]).toEqual([409, expect.stringContaining('has been modified')])
  })

  it('114: watches of a definition that changes end, so that clients begin anew', async () => {
    const { response } = await api.call('GET', `${widgets}?watch=1`)
    if (response.body.type !== 'watch') throw new Error('no watch')
    const patch = { spec: { names: { shortNames: ['wi'] } } }
    expect((await api.call('PATCH', `${definitions}/widgets.example.com`, patch, MERGE)).status).toBe(200)
    const types = []
    for await (const frame of response.body.frames) types.push(frame.event.type)
    expect(types).not.toContain('ERROR')
  })

  it('114: a changed schema holds for the next write', async () => {
    const patch = {
      spec: { versions: (definition("self.size != 'large'") as { spec: { versions: object[] } }).spec.versions },
    }
    expect((await api.call('PATCH', `${definitions}/widgets.example.com`, patch, MERGE)).status).toBe(200)
    const big = await api.call('POST', widgets, widget('big', { size: 'large' }))
    expect([big.status, big.value.details.causes]).toMatchObject([422, [{ field: 'spec' }]])
    expect((await api.call('POST', widgets, widget('vast', { size: 'huge' }))).status).toBe(201)
  })

  it('109: an unknown function in a rule is refused', async () => {
    const patch = { spec: (definition('self.size.fly()') as { spec: object }).spec }
    const refused = await api.call('PATCH', `${definitions}/widgets.example.com`, patch, MERGE)
    expect([refused.status, refused.value.message]).toEqual([422, expect.stringContaining('fly')])
  })

  it('102: takes its objects along, and can come back', async () => {
    await api.call('DELETE', `${definitions}/widgets.example.com`)
    await expect.poll(async () => (await api.call('GET', `${definitions}/widgets.example.com`)).status).toBe(404)
    expect((await api.call('GET', widgets)).status).toBe(404)
    expect((await api.call('POST', definitions, definition())).status).toBe(201)
    expect((await api.call('GET', widgets)).value.items).toEqual([])
  })
})

describe('the Agent Sandbox kinds', () => {
  const beta = '/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes'
  const alpha = '/apis/agents.x-k8s.io/v1alpha1/namespaces/default/sandboxes'
  const template = { spec: { containers: [{ name: 'c', image: 'example/c' }] } }

  it('110, 111: written in one version, read in the other, with a warning in the old one', async () => {
    const body = {
      apiVersion: 'agents.x-k8s.io/v1alpha1',
      kind: 'Sandbox',
      metadata: { name: 'old' },
      spec: { podTemplate: template, replicas: 0 },
    }
    const created = await api.call('POST', alpha, body)
    expect(created.status).toBe(201)
    expect(created.response.headers.warning).toContain('deprecated')
    expect(created.value.spec.replicas).toBe(0)
    const { value } = await api.call('GET', `${beta}/old`)
    expect(value.apiVersion).toBe('agents.x-k8s.io/v1beta1')
    expect(value.spec.operatingMode).toBe('Suspended')
    expect((await api.call('GET', `${alpha}/old`)).value.spec.replicas).toBe(0)
  })

  it('47: a template has no status', async () => {
    const templates = '/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxtemplates'
    const body = {
      apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
      kind: 'SandboxTemplate',
      metadata: { name: 't' },
      spec: { podTemplate: template },
    }
    expect((await api.call('POST', templates, body)).status).toBe(201)
    expect((await api.call('GET', `${templates}/t/status`)).status).toBe(404)
  })

  it('113: applying the definitions again changes nothing', async () => {
    for (const crd of embeddedCrds()) {
      const url = `${definitions}/${crd.metadata?.name}?fieldManager=t&force=true`
      const first = await api.call('PATCH', url, crd, APPLY)
      expect(first.status).toBe(200)
      const second = await api.call('PATCH', url, crd, APPLY)
      expect(second.value.metadata.resourceVersion).toBe(first.value.metadata.resourceVersion)
    }
  })
})

it('selectable fields select, in lists and in watches, and a missing value is empty', async () => {
  const properties = { color: { type: 'string' }, count: { type: 'integer' }, isOn: { type: 'boolean' } }
  const openAPIV3Schema = { type: 'object', properties: { spec: { type: 'object', properties } } }
  const selectableFields = Object.keys(properties).map((name) => ({ jsonPath: `.spec.${name}` }))
  const made = await api.call('POST', definitions, {
    metadata: { name: 'lamps.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'lamps', kind: 'Lamp' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema }, selectableFields }],
    },
  })
  expect(made.status).toBe(201)
  const lamps = '/apis/example.com/v1/namespaces/default/lamps'
  const lamp = (name: string, spec: object): object => ({
    apiVersion: 'example.com/v1',
    kind: 'Lamp',
    metadata: { name },
    spec,
  })
  await api.call('POST', lamps, lamp('a', { color: 'red', count: 0, isOn: true }))
  await api.call('POST', lamps, lamp('b', { color: 'blue', isOn: false }))
  for (const [selector, names] of [
    ['spec.color=red', ['a']],
    ['spec.color!=red', ['b']],
    ['spec.count=0', ['a']],
    ['spec.count=', ['b']],
    ['spec.isOn=false,spec.color=blue', ['b']],
  ] as const) {
    const { value } = await api.call('GET', `${lamps}?fieldSelector=${selector}`)
    expect(
      value.items.map((item: { metadata: { name: string } }) => item.metadata.name),
      selector,
    ).toEqual(names)
  }
  const events = api.events(`${lamps}?watch=1&fieldSelector=spec.color=red`, 2)
  await api.call('PATCH', `${lamps}/b`, { spec: { color: 'red' } }, MERGE)
  expect((await events).map(({ type, object }) => `${type} ${object.metadata?.name}`)).toEqual(['ADDED a', 'ADDED b'])
  expect((await api.call('GET', `${lamps}?fieldSelector=spec.size=1`)).value.message).toBe(
    'field label not supported: spec.size',
  )
})

it('a definition that is being deleted says so and takes no new objects', async () => {
  const openAPIV3Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  await api.call('POST', definitions, {
    metadata: { name: 'leaves.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'leaves', kind: 'Leaf' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  })
  const leaves = '/apis/example.com/v1/namespaces/default/leaves'
  const leaf = (name: string): object => ({
    apiVersion: 'example.com/v1',
    kind: 'Leaf',
    metadata: { name, finalizers: ['example.com/hold'] },
  })
  expect((await api.call('POST', leaves, leaf('last'))).status).toBe(201)
  const deleted = await api.call('DELETE', `${definitions}/leaves.example.com`)
  expect(deleted.value.status.conditions).toContainEqual(
    expect.objectContaining({ type: 'Terminating', status: 'True', reason: 'InstanceDeletionPending' }),
  )
  expect((await api.call('POST', leaves, leaf('late'))).value).toMatchObject({
    code: 403,
    message:
      'leaves.example.com "late" is forbidden: create not allowed while custom resource definition is terminating',
  })
  await api.call('PATCH', `${leaves}/last`, { metadata: { finalizers: null } }, MERGE)
  await expect.poll(async () => (await api.call('GET', `${definitions}/leaves.example.com`)).status).toBe(404)
})
