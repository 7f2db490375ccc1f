import { deepEqual, equal, match } from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crdManifests } from '@corral/resources'
import { type Check, check } from '../harness/check.js'
import { type Context, mergePatch } from '../harness/context.js'
import type { Answer } from '../harness/http-client.js'
import { at } from '../harness/kube-body.js'
import { anyKubectl } from '../harness/kubectl.js'
import { type CrdShape, crd, extensions, pool, sandbox, sandboxes } from '../harness/objects.js'

const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const text = { type: 'string' }

interface Installed {
  readonly group: string
  readonly path: string
  readonly definition: string
  object(spec: unknown, name?: string): object
  send(spec: unknown, name?: string): Promise<Answer>
}

/** Installs a CRD of a group of its own and waits until its objects are served. */
async function install(t: Context, shape: Partial<CrdShape> & { spec?: object; schema: object }): Promise<Installed> {
  const group = `${t.unique('crd')}.example.com`
  const plural = 'things'
  const version = (shape.versions as { name: string }[] | undefined)?.[0]?.name ?? 'v1'
  await t.create(crds, crd({ plural, group, kind: 'Thing', ...shape }))
  const definition = `${crds}/${plural}.${group}`
  t.after(async () => void (await t.del(definition)))
  const path = await t.group(`${group}/${version}`, plural)
  await t.eventually('served', async () => (await t.get(path)).status === 200)
  const object = (spec: unknown, name = 'one'): object => ({
    apiVersion: `${group}/${version}`,
    kind: 'Thing',
    metadata: { name },
    spec,
  })
  return { group, path, definition, object, send: (spec, name) => t.post(path, object(spec, name)) }
}

const withSpec = (properties: object, more: object = {}): object => ({
  type: 'object',
  properties: { spec: { type: 'object', properties, ...more } },
})

const conditionOf = (body: unknown, type: string): unknown =>
  (at(body, 'status.conditions') as { type: string; status: string }[] | undefined)?.find((one) => one.type === type)
    ?.status

export const customResources: readonly Check[] = [
  check(104, 'a CRD becomes established and its objects can be created', async (t) => {
    const group = `${t.unique('crd')}.example.com`
    await t.create(crds, crd({ plural: 'things', group, kind: 'Thing', schema: withSpec({ a: text }) }))
    t.after(async () => void (await t.del(`${crds}/things.${group}`)))
    const stored = await t.eventually(
      'established',
      async () => {
        const body = (await t.get(`${crds}/things.${group}`)).is(200)
        return conditionOf(body, 'Established') === 'True' && body
      },
      240_000,
    )
    deepEqual([conditionOf(stored, 'NamesAccepted'), at(stored, 'status.storedVersions')], ['True', ['v1']])
    equal(at(stored, 'status.acceptedNames.kind'), 'Thing')
    const thing = { apiVersion: `${group}/v1`, kind: 'Thing', metadata: { name: 'one' }, spec: { a: 'b' } }
    const path = await t.group(`${group}/v1`, 'things')
    // A real server publishes the handler a moment after the condition.
    await t.eventually('created', async () => (await t.post(path, thing)).status === 201, t.isEmbedded ? 1 : 240_000)
  }),
  check(105, 'unknown fields are pruned, and kept below preserve-unknown-fields', async (t) => {
    const free = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
    const things = await install(t, { schema: withSpec({ a: text, free }) })
    const stored = (await things.send({ a: '1', b: '2', free: { any: { thing: [1] } } })).is(201)
    deepEqual(stored.spec, { a: '1', free: { any: { thing: [1] } } })
  }),
  check(106, 'defaults are applied on create, and on reading objects older than the default', async (t) => {
    const things = await install(t, {
      schema: withSpec({
        a: { ...text, default: 'one' },
        deep: { type: 'object', properties: { b: { type: 'integer', default: 5 } } },
      }),
    })
    deepEqual((await things.send({}, 'empty')).is(201).spec, { a: 'one' })
    deepEqual((await things.send({ deep: {} }, 'deep')).is(201).spec, { a: 'one', deep: { b: 5 } })
    const operations = [
      {
        op: 'add',
        path: '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/late',
        value: { ...text, default: 'new' },
      },
    ]
    ;(await t.patch(things.definition, 'application/json-patch+json', operations)).is(200)
    await t.eventually(
      'default on read',
      async () => at((await t.get(`${things.path}/empty`)).is(200), 'spec.late') === 'new',
    )
  }),
  check(107, 'every validation keyword refuses a bad value and names the field', async (t) => {
    const integer = { type: 'integer' }
    const rows: readonly {
      field: string
      schema: object
      bad: unknown
      good: unknown
      at?: string
      message: RegExp
    }[] = [
      { field: 'type', schema: integer, bad: 'x', good: 1, message: /must be of type integer/ },
      {
        field: 'enum',
        schema: { ...text, enum: ['a', 'b'] },
        bad: 'c',
        good: 'a',
        message: /supported values: "a", "b"/,
      },
      {
        field: 'pattern',
        schema: { ...text, pattern: '^a+$' },
        bad: 'b',
        good: 'aa',
        message: /should match '\^a\+\$'/,
      },
      {
        field: 'minimum',
        schema: { ...integer, minimum: 3 },
        bad: 2,
        good: 3,
        message: /should be greater than or equal to 3/,
      },
      {
        field: 'maximum',
        schema: { ...integer, maximum: 3 },
        bad: 4,
        good: 3,
        message: /should be less than or equal to 3/,
      },
      {
        field: 'exclusive',
        schema: { ...integer, maximum: 3, exclusiveMaximum: true },
        bad: 3,
        good: 2,
        message: /should be less than 3/,
      },
      {
        field: 'multiple',
        schema: { ...integer, multipleOf: 5 },
        bad: 7,
        good: 10,
        message: /should be a multiple of 5/,
      },
      {
        field: 'minLength',
        schema: { ...text, minLength: 2 },
        bad: 'a',
        good: 'ab',
        message: /should be at least 2 chars long/,
      },
      {
        field: 'maxLength',
        schema: { ...text, maxLength: 2 },
        bad: 'abc',
        good: 'ab',
        message: /may not be more than 2 bytes|should be at most 2 chars long/,
      },
      {
        field: 'minItems',
        schema: { type: 'array', items: text, minItems: 1 },
        bad: [],
        good: ['a'],
        message: /should have at least 1 items/,
      },
      {
        field: 'maxItems',
        schema: { type: 'array', items: text, maxItems: 1 },
        bad: ['a', 'b'],
        good: ['a'],
        message: /must have at most 1 item/,
      },
      {
        field: 'minProps',
        schema: { type: 'object', additionalProperties: text, minProperties: 1 },
        bad: {},
        good: { a: 'b' },
        message: /should have at least 1 properties/,
      },
      {
        field: 'maxProps',
        schema: { type: 'object', additionalProperties: text, maxProperties: 1 },
        bad: { a: '', b: '' },
        good: { a: '' },
        message: /must have at most 1 item/,
      },
      {
        field: 'time',
        schema: { ...text, format: 'date-time' },
        bad: 'noon',
        good: '2026-01-01T00:00:00Z',
        message: /must be of type date-time/,
      },
      {
        field: 'oneOf',
        schema: { ...integer, oneOf: [{ minimum: 5 }, { maximum: 7 }] },
        bad: 6,
        good: 9,
        at: '<nil>',
        message: /must validate one and only one schema \(oneOf\)/,
      },
      {
        field: 'anyOf',
        schema: { ...integer, anyOf: [{ minimum: 5 }, { maximum: 2 }] },
        bad: 3,
        good: 9,
        at: '<nil>',
        message: /must validate at least one schema \(anyOf\)/,
      },
      {
        field: 'not',
        schema: { ...integer, not: { minimum: 5 } },
        bad: 6,
        good: 1,
        at: '<nil>',
        message: /must not validate the schema \(not\)/,
      },
      {
        field: 'required',
        schema: { type: 'object', required: ['in'], properties: { in: text } },
        bad: {},
        good: { in: '' },
        at: 'spec.required.in',
        message: /Required value/,
      },
      {
        field: 'set',
        schema: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
        bad: ['a', 'a'],
        good: ['a'],
        at: 'spec.set[1]',
        message: /Duplicate value: "a"/,
      },
      {
        field: 'nested',
        schema: { type: 'array', items: { type: 'object', properties: { n: integer } } },
        bad: [{ n: 'x' }],
        good: [{ n: 1 }],
        at: 'spec.nested[0].n',
        message: /must be of type integer/,
      },
    ]
    const properties = Object.fromEntries(rows.map(({ field, schema }) => [field, schema]))
    const things = await install(t, { schema: withSpec(properties) })
    for (const { field, bad, good, message, at: path = `spec.${field}` } of rows) {
      const error = (await things.send({ [field]: bad }, field.toLowerCase())).is(422)
      match(error.message, message, field)
      deepEqual(
        error.details.causes?.some((cause) => cause.field === path),
        true,
        `${field}: ${JSON.stringify(error.details.causes)}`,
      )
      ;(await things.send({ [field]: good }, field.toLowerCase())).is(201)
    }
  }),
  check(108, "Sandbox's volumeClaimTemplates cannot change, and may stay equal", async (t) => {
    const path = await t.group(sandboxes, 'sandboxes', 'one')
    const claim = (size: string): object => ({
      metadata: { name: 'd' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: size } } },
    })
    await t.create(
      await t.group(sandboxes, 'sandboxes'),
      sandbox('one', {
        spec: {
          podTemplate: { spec: { containers: [{ name: 'c', image: 'i' }] } },
          volumeClaimTemplates: [claim('1Gi')],
        },
      }),
    )
    const error = (await t.patch(path, mergePatch, { spec: { volumeClaimTemplates: [claim('2Gi')] } })).is(422)
    match(error.message, /volumeClaimTemplates is immutable|immutable/)
    ;(await t.patch(path, mergePatch, { spec: { volumeClaimTemplates: [claim('1Gi')] } })).is(200)
    ;(await t.patch(path, mergePatch, { spec: { volumeClaimTemplates: null } })).is(422)
  }),
  check(109, 'a CRD with an unknown CEL function or a schema that is not structural is refused', async (t) => {
    const send = (schema: object): Promise<Answer> =>
      t.post(crds, crd({ plural: 'things', group: `${t.unique('bad')}.example.com`, kind: 'Thing', schema }))
    const rule = { 'x-kubernetes-validations': [{ rule: 'nonsense(self.a)' }] }
    const error = (await send(withSpec({ a: text }, rule))).is(422)
    match(error.message, /undeclared reference to 'nonsense'|undeclared reference/)
    ;(await send({ type: 'object', properties: { a: {} } })).is(422)
    ;(await send({ type: 'object', properties: { a: { $ref: '#/x' } } })).is(422)
  }),
  check(
    110,
    'two served versions: written in one, read in the other and back without loss',
    async (t) => {
      const version = (name: string, storage: boolean): object => ({
        name,
        served: true,
        storage,
        schema: { openAPIV3Schema: withSpec({ a: text }) },
      })
      const things = await install(t, { schema: {}, versions: [version('v1', true), version('v1beta1', false)] })
      ;(await things.send({ a: 'x' })).is(201)
      const other = things.path.replace('/v1/', '/v1beta1/')
      const read = (await t.get(`${other}/one`)).is(200)
      deepEqual([read.apiVersion, read.spec], [`${things.group}/v1beta1`, { a: 'x' }])
      const back = (await t.put(`${other}/one`, { ...read, spec: { a: 'y' } })).is(200)
      equal(back.apiVersion, `${things.group}/v1beta1`)
      deepEqual((await t.get(`${things.path}/one`)).is(200).spec, { a: 'y' })
      if (t.isEmbedded) await convertsSandboxes(t)
    },
    { differs: 'v1alpha1 of the agent-sandbox kinds is served by the embedded one only' },
  ),
  check(111, 'a deprecated version warns on every request', async (t) => {
    const schema = { openAPIV3Schema: withSpec({ a: text }) }
    const versions = [
      { name: 'v1beta1', served: true, storage: false, deprecated: true, deprecationWarning: 'use v1', schema },
      { name: 'v1', served: true, storage: true, schema },
    ]
    const things = await install(t, { schema: {}, versions })
    const created = await things.send({ a: 'b' })
    created.is(201)
    match(created.warnings, /299 - "use v1"/)
    match((await t.get(`${things.path}/one`)).warnings, /299 - "use v1"/)
    equal((await t.get(things.path.replace('/v1beta1/', '/v1/'))).warnings, '')
  }),
  check(
    112,
    'scale: GET, PUT, PATCH, kubectl scale, and a stale version is 409',
    async (t) => {
      const path = await t.group(extensions, 'sandboxwarmpools', 'one')
      await t.create(await t.group(extensions, 'sandboxwarmpools'), pool('one', 1))
      const scale = (await t.get(`${path}/scale`)).is(200)
      deepEqual([scale.kind, scale.apiVersion, at(scale, 'spec.replicas')], ['Scale', 'autoscaling/v1', 1])
      const put = (await t.put(`${path}/scale`, { ...scale, spec: { replicas: 2 } })).is(200)
      deepEqual([at(put, 'spec.replicas'), put.metadata.name], [2, 'one'])
      equal((await t.put(`${path}/scale`, { ...scale, spec: { replicas: 9 } })).is(409).reason, 'Conflict')
      ;(await t.patch(`${path}/scale`, mergePatch, { spec: { replicas: 0 } })).is(200)
      equal(at((await t.get(path)).is(200), 'spec.replicas'), 0)
      match(await t.ok(anyKubectl, ['scale', 'swp/one', '--replicas=3']), /scaled/)
      const stored = (await t.get(path)).is(200)
      deepEqual([at(stored, 'spec.replicas'), stored.metadata.generation], [3, 4])
    },
    { heavy: true },
  ),
  check(
    113,
    'kubectl applies the agent-sandbox CRDs, on the client and on the server, twice',
    async (t) => {
      const file = join(t.directory(), 'crds.json')
      const items = crdManifests(t.isEmbedded ? 'embedded' : 'cluster').filter(({ spec }) =>
        spec.group.endsWith('agents.x-k8s.io'),
      )
      writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
      equal(items.length, 4)
      await t.ok(anyKubectl, ['apply', '-f', file])
      equal((await t.ok(anyKubectl, ['apply', '-f', file])).match(/unchanged/g)?.length, 4)
      for (const _ of [1, 2]) {
        const out = await t.ok(anyKubectl, ['apply', '--server-side', '--force-conflicts', '-f', file])
        equal(out.match(/serverside-applied/g)?.length, 4)
      }
      const waited = await t.ok(anyKubectl, [
        'wait',
        '--for=condition=Established',
        '--timeout=10s',
        'crd/sandboxes.agents.x-k8s.io',
      ])
      match(waited, /condition met/)
    },
    { heavy: true },
  ),
  check(
    114,
    'a changed schema holds for the next write, and explain shows it',
    async (t) => {
      const things = await install(t, { schema: withSpec({ a: text }) })
      deepEqual((await things.send({ a: '1', later: '2' }, 'before')).is(201).spec, { a: '1' })
      const operation = {
        op: 'add',
        path: '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/later',
        value: { ...text, description: 'came later' },
      }
      ;(await t.patch(things.definition, 'application/json-patch+json', [operation])).is(200)
      let tries = 0
      await t.eventually(
        'kept',
        async () => at((await things.send({ later: '2' }, `after-${++tries}`)).is(201), 'spec.later') === '2',
      )
      await t.eventually('explained', async () =>
        /later\s+<string>/.test(await t.ok(anyKubectl, ['explain', `things.spec`, `--api-version=${things.group}/v1`])),
      )
    },
    { heavy: true },
  ),
]

/** The converters that the embedded server brings for the version the seeds used. */
async function convertsSandboxes(t: Context): Promise<void> {
  const old = await t.group('agents.x-k8s.io/v1alpha1', 'sandboxes')
  const spec = { podTemplate: { spec: { containers: [{ name: 'c', image: 'i' }] } }, replicas: 0 }
  const written = await t.create(old, {
    apiVersion: 'agents.x-k8s.io/v1alpha1',
    kind: 'Sandbox',
    metadata: { name: 'one' },
    spec,
  })
  const now = (await t.get(await t.group(sandboxes, 'sandboxes', 'one'))).is(200)
  equal(at(now, 'spec.operatingMode'), 'Suspended')
  equal(at(now, 'spec.replicas'), undefined)
  const back = (await t.get(`${old}/one`)).is(200)
  deepEqual(back.spec, written.spec)
  equal(at(back, 'spec.replicas'), 0)
}
