import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { type Check, check } from '../harness/check.js'
import { applyPatch, type Context, mergePatch } from '../harness/context.js'
import type { Answer } from '../harness/http-client.js'
import { at, type KubeBody } from '../harness/kube-body.js'
import { anyKubectl } from '../harness/kubectl.js'
import { configMap, crd, sandbox, sandboxes } from '../harness/objects.js'

const apply = (t: Context, path: string, manager: string, body: object, query = ''): Promise<Answer> =>
  t.patch(`${path}?fieldManager=${manager}${query}`, applyPatch, body)

const entry = (body: KubeBody, manager: string) => body.metadata.managedFields?.find((one) => one.manager === manager)

export const serverSideApply: readonly Check[] = [
  check(59, 'apply creates with 201 and records an Apply entry with its fields', async (t) => {
    const path = await t.core('configmaps', 'one')
    const stored = (
      await apply(t, path, 'alice', { ...configMap('one'), metadata: { name: 'one', labels: { l: 'v' } } })
    ).is(201)
    const managed = entry(stored, 'alice')
    deepEqual([managed?.operation, managed?.apiVersion, managed?.fieldsType], ['Apply', 'v1', 'FieldsV1'])
    deepEqual(managed?.fieldsV1, { 'f:data': { 'f:a': {} }, 'f:metadata': { 'f:labels': { 'f:l': {} } } })
  }),
  check(60, 'a field left out is removed, one that another manager owns stays', async (t) => {
    const path = await t.core('configmaps', 'one')
    ;(await apply(t, path, 'alice', configMap('one', { a: '1', b: '2' }))).is(201)
    ;(await apply(t, path, 'bob', configMap('one', { b: '2', c: '3' }))).is(200)
    const after = (await apply(t, path, 'alice', configMap('one', { a: '1' }))).is(200)
    deepEqual(after.data, { a: '1', b: '2', c: '3' })
    const rest = (await apply(t, path, 'bob', configMap('one', { c: '3' }))).is(200)
    deepEqual(rest.data, { a: '1', c: '3' })
  }),
  check(61, 'another value than the owner gave is 409 with path and manager; force takes it', async (t) => {
    const path = await t.core('configmaps', 'one')
    ;(await apply(t, path, 'alice', configMap('one', { a: '1' }))).is(201)
    const error = (await apply(t, path, 'bob', configMap('one', { a: '2' }))).is(409)
    equal(error.reason, 'Conflict')
    match(error.message, /^Apply failed with 1 conflict: conflict with "alice": \.data\.a$/)
    deepEqual(error.details.causes, [
      { reason: 'FieldManagerConflict', message: 'conflict with "alice"', field: '.data.a' },
    ])
    const forced = (await apply(t, path, 'bob', configMap('one', { a: '2' }), '&force=true')).is(200)
    deepEqual([forced.data.a, entry(forced, 'alice')], ['2', undefined])
    ;(await t.patch(`${path}?fieldManager=carol`, mergePatch, { data: { a: '5' } })).is(200)
    const update = (await apply(t, path, 'bob', configMap('one', { a: '2' }))).is(409)
    match(update.message, /conflict with "carol" using v1: \.data\.a/)
  }),
  check(62, 'the same value from two managers is shared without conflict', async (t) => {
    const path = await t.core('configmaps', 'one')
    ;(await apply(t, path, 'alice', configMap('one'))).is(201)
    const shared = (await apply(t, path, 'bob', configMap('one'))).is(200)
    for (const manager of ['alice', 'bob']) deepEqual(at(entry(shared, manager)?.fieldsV1, 'f:data.f:a'), {}, manager)
  }),
  check(63, 'no fieldManager, managedFields in the body, a foreign apiVersion are refused', async (t) => {
    const path = await t.core('configmaps', 'one')
    const nobody = (await t.patch(path, applyPatch, configMap('one'))).is(422)
    match(nobody.message, /fieldManager: Required value: is required for apply patch/)
    const managedFields = [{ manager: 'x', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: {} }]
    const managed = { ...configMap('one'), metadata: { name: 'one', managedFields } }
    match((await apply(t, path, 'alice', managed)).is(400).message, /metadata\.managedFields must be nil/)
    ;(await apply(t, path, 'alice', { ...configMap('one'), apiVersion: 'v2' })).is(400)
    ;(await t.patch(`${path}?fieldManager=a&force=true`, mergePatch, { data: {} })).is(422, 404)
  }),
  check(64, 'lists: maps merge by key, sets deduplicate, atomic ones are replaced', async (t) => {
    const group = `${t.unique('lists')}.example.com`
    const list = (items: object, extra: object): object => ({ type: 'array', items, ...extra })
    const text = { type: 'string' }
    const item = { type: 'object', required: ['name'], properties: { name: text, value: text } }
    const properties = {
      byKey: list(item, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
      asSet: list(text, { 'x-kubernetes-list-type': 'set' }),
      whole: list(text, { 'x-kubernetes-list-type': 'atomic' }),
    }
    const schema = { type: 'object', properties: { spec: { type: 'object', properties } } }
    await t.create(
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      crd({ plural: 'lists', group, kind: 'Listed', schema }),
    )
    t.after(async () => void (await t.del(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/lists.${group}`)))
    const path = await t.group(`${group}/v1`, 'lists', 'one')
    const object = (spec: object): object => ({
      apiVersion: `${group}/v1`,
      kind: 'Listed',
      metadata: { name: 'one' },
      spec,
    })
    const first = { byKey: [{ name: 'a', value: '1' }], asSet: ['x'], whole: ['m'] }
    const second = { byKey: [{ name: 'b', value: '2' }], asSet: ['x', 'y'], whole: ['n'] }
    await t.eventually('applied', async () => (await apply(t, path, 'alice', object(first))).status === 201)
    const conflict = (await apply(t, path, 'bob', object(second))).is(409)
    deepEqual(
      conflict.details.causes?.map(({ field }) => field),
      ['.spec.whole'],
    )
    const merged = (await apply(t, path, 'bob', object(second), '&force=true')).is(200)
    deepEqual(merged.spec, {
      byKey: [
        { name: 'a', value: '1' },
        { name: 'b', value: '2' },
      ],
      asSet: ['x', 'y'],
      whole: ['n'],
    })
    deepEqual(at(entry(merged, 'bob')?.fieldsV1, 'f:spec.f:byKey'), {
      'k:{"name":"b"}': { '.': {}, 'f:name': {}, 'f:value': {} },
    })
  }),
  check(65, '/status is tracked as an entry of its own', async (t) => {
    const path = await t.group(sandboxes, 'sandboxes', 'one')
    ;(await apply(t, path, 'alice', sandbox('one'))).is(201)
    const head = { apiVersion: sandboxes, kind: 'Sandbox', metadata: { name: 'one' } }
    const stored = (
      await apply(t, `${path}/status`, 'alice', { ...head, status: { serviceFQDN: 'x.example.com' } })
    ).is(200)
    const entries = stored.metadata.managedFields?.filter(({ manager }) => manager === 'alice') ?? []
    deepEqual(entries.map(({ subresource }) => subresource ?? '').sort(), ['', 'status'])
    deepEqual(at(entries.find(({ subresource }) => subresource === 'status')?.fieldsV1, 'f:status'), {
      'f:serviceFQDN': {},
    })
    ok(at(stored, 'spec.podTemplate'))
  }),
  check(
    66,
    'kubectl apply on the client, then on the server, then on the client again',
    async (t) => {
      const input = (value: string): string => JSON.stringify(configMap('one', { a: value }))
      const run = (value: string, ...flags: string[]): Promise<string> =>
        t.ok(anyKubectl, ['apply', '-f', '-', ...flags], { input: input(value) })
      match(await run('1'), /created/)
      match(await run('2', '--server-side'), /serverside-applied/)
      match(await run('3'), /configured/)
      match(await run('3'), /unchanged/)
      equal((await t.get(await t.core('configmaps', 'one'))).is(200).data.a, '3')
    },
    { heavy: true },
  ),
  check(67, 'an identical apply changes nothing', async (t) => {
    for (const [path, object] of [
      [await t.core('configmaps', 'one'), configMap('one')],
      [await t.group(sandboxes, 'sandboxes', 'one'), sandbox('one')],
    ] as const) {
      const first = (await apply(t, path, 'alice', object)).is(201)
      const again = (await apply(t, path, 'alice', object)).is(200)
      equal(again.metadata.resourceVersion, first.metadata.resourceVersion)
    }
  }),
]
