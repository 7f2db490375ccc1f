import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { type Check, check } from '../harness/check.js'
import { type Context, mergePatch } from '../harness/context.js'
import type { Answer } from '../harness/http-client.js'
import { at, type KubeBody } from '../harness/kube-body.js'
import { anyKubectl } from '../harness/kubectl.js'
import { configMap, pod, sandboxes, template } from '../harness/objects.js'
import { deleteOptionsBody, deploymentBody, namespaceBody, protobuf, samples } from '../harness/protobuf.js'

const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const partialList = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
const partial = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'

interface Row {
  readonly cells: readonly unknown[]
  readonly object?: KubeBody
}
const rows = (body: KubeBody): readonly Row[] => body.rows as readonly Row[]
const columns = (body: KubeBody): string[] => (body.columnDefinitions as { name: string }[]).map(({ name }) => name)

export const openapi: readonly Check[] = [
  check(16, '/openapi/v3 lists every served group-version and each link loads', async (t) => {
    const listed = async (): Promise<Record<string, { serverRelativeURL: string }>> =>
      ((await t.get('/openapi/v3')).is(200) as unknown as { paths: Record<string, { serverRelativeURL: string }> })
        .paths
    const served = (await t.get('/apis')).is(200).groups as { versions: { groupVersion: string }[] }[]
    const wanted = [
      'api/v1',
      ...served.flatMap(({ versions }) => versions.map((entry) => `apis/${entry.groupVersion}`)),
    ]
    for (const path of wanted) {
      // A real server publishes what a definition brings a moment after it serves it.
      const link = await t.eventually(`${path} listed`, async () => (await listed())[path]?.serverRelativeURL)
      ok(at((await t.get(link)).is(200), 'components.schemas'), path)
    }
  }),
  check(17, "Namespace's patch operation takes fieldValidation", async (t) => {
    const document = (await t.get('/openapi/v3/api/v1')).is(200) as unknown as {
      paths: Record<
        string,
        { patch?: { 'x-kubernetes-group-version-kind'?: object; parameters?: { name: string; in: string }[] } }
      >
    }
    const operation = Object.values(document.paths).find(
      ({ patch }) => at(patch?.['x-kubernetes-group-version-kind'], 'kind') === 'Namespace',
    )?.patch
    deepEqual(operation?.['x-kubernetes-group-version-kind'], { group: '', version: 'v1', kind: 'Namespace' })
    ok(operation?.parameters?.some((parameter) => parameter.name === 'fieldValidation' && parameter.in === 'query'))
  }),
  check(
    18,
    'kubectl explain prints fields of pods.spec and sandbox.spec',
    async (t) => {
      match(await t.ok(anyKubectl, ['explain', 'pods.spec']), /containers\s+<\[\]Container>/)
      match(await t.ok(anyKubectl, ['explain', 'sandbox.spec']), /podTemplate\s+<Object>/)
    },
    { heavy: true },
  ),
  check(
    19,
    'kubectl create with a misspelt field fails strictly',
    async (t) => {
      const input = JSON.stringify(pod('one', { spec: { containers: [{ name: 'a', image: 'b', comand: ['x'] }] } }))
      const result = await t.kubectl(anyKubectl, ['-n', await t.ns(), 'create', '-f', '-'], { input })
      equal(result.code, 1)
      match(result.err, /strict decoding error: unknown field "spec\.containers\[0\]\.comand"/)
      const path = `${await t.core('pods')}?fieldValidation=Strict`
      const answer = (await t.post(path, input, {})).is(400)
      equal(answer.reason, 'BadRequest')
      match(answer.message, /^Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field/)
    },
    { heavy: true },
  ),
  check(
    20,
    'with --validate=warn it is created, with a Warning header',
    async (t) => {
      const input = JSON.stringify(pod('one', { spec: { containers: [{ name: 'a', image: 'b', comand: ['x'] }] } }))
      const result = await t.kubectl(anyKubectl, ['-n', await t.ns(), 'create', '--validate=warn', '-f', '-'], {
        input,
      })
      equal(result.code, 0, result.err)
      match(result.err, /Warning: unknown field "spec\.containers\[0\]\.comand"/)
      const answer = await t.post(`${await t.core('configmaps')}?fieldValidation=Warn`, {
        metadata: { name: 'x' },
        dat: {},
      })
      answer.is(201)
      match(answer.warnings, /299 - "unknown field \\"dat\\""/)
    },
    { heavy: true },
  ),
  check(
    21,
    'a client that prefers protobuf gets an answer',
    async (t) => {
      const answer = await t.get('/api/v1/namespaces/default', {
        accept: 'application/vnd.kubernetes.protobuf,application/json',
      })
      equal(answer.status, 200)
      if (t.isEmbedded) equal(answer.body.kind, 'Namespace')
    },
    { differs: 'the embedded one answers in JSON, which such clients take' },
  ),
  check(22, 'a protobuf POST stores the same object as the JSON POST', async (t) => {
    const binary = { contentType: protobuf, accept: 'application/json' }
    for (const sample of samples) {
      const path = await t.core(sample.plural)
      const fromBytes = (await t.post(path, sample.protobuf('from-protobuf'), binary)).is(201)
      const fromJson = (await t.post(path, sample.json('from-json'))).is(201)
      const clean = (body: KubeBody): object => ({ ...body, metadata: { labels: body.metadata.labels } })
      deepEqual(clean(fromBytes), clean(fromJson), sample.kind)
    }
    const name = t.unique('proto')
    equal((await t.post('/api/v1/namespaces', namespaceBody(name), binary)).is(201).metadata.name, name)
    await t.del(`/api/v1/namespaces/${name}`)
  }),
  check(23, 'a protobuf Deployment with replicas 0 keeps the zero', async (t) => {
    const path = await t.group('apps/v1', 'deployments')
    const options = { contentType: protobuf, accept: 'application/json' }
    equal(at((await t.post(path, deploymentBody('zero', 0), options)).is(201), 'spec.replicas'), 0)
  }),
  check(24, 'protobuf DeleteOptions with a uid precondition are honoured', async (t) => {
    const path = await t.core('configmaps')
    const stored = await t.create(path, configMap('one'))
    const remove = (uid: string): Promise<Answer> =>
      t.call('DELETE', `${path}/one`, {
        body: deleteOptionsBody(uid),
        contentType: protobuf,
        accept: 'application/json',
      })
    equal((await remove('wrong')).is(409).reason, 'Conflict')
    ;(await remove(stored.metadata.uid)).is(200)
  }),
  check(25, 'a body of an unknown type is 415', async (t) => {
    const body = (await t.post(await t.core('configmaps'), 'a,b', { contentType: 'text/csv' })).is(415)
    equal(body.reason, 'UnsupportedMediaType')
    match(body.message, /application\/json/)
  }),
  check(26, 'a YAML body is accepted', async (t) => {
    const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: "1"}\n'
    const body = (
      await t.post(await t.core('configmaps'), text, { contentType: 'application/yaml', accept: 'application/json' })
    ).is(201)
    deepEqual(body.data, { a: '1' })
  }),
  check(27, 'a Table has columns, the name first, and the row objects that were asked for', async (t) => {
    const path = await t.core('configmaps')
    await t.create(path, configMap('one'))
    const list = (query: string): Promise<KubeBody> =>
      t
        .get(`${path}?labelSelector=!none&fieldSelector=metadata.name%3Done${query}`, { accept: table })
        .then((a) => a.is(200))
    const body = await list('')
    deepEqual([body.kind, body.apiVersion, columns(body)], ['Table', 'meta.k8s.io/v1', ['Name', 'Data', 'Age']])
    deepEqual(rows(body)[0]?.cells.slice(0, 2), ['one', 1])
    equal(rows(body)[0]?.object?.kind, 'PartialObjectMetadata')
    equal(rows(await list('&includeObject=None'))[0]?.object ?? null, null)
    equal(rows(await list('&includeObject=Metadata'))[0]?.object?.kind, 'PartialObjectMetadata')
    deepEqual(rows(await list('&includeObject=Object'))[0]?.object?.data, { a: '1' })
    const pods = (await t.get(await t.core('pods'), { accept: table })).is(200)
    const wide = ['Name', 'Ready', 'Status', 'Restarts', 'Age', 'IP', 'Node', 'Nominated Node', 'Readiness Gates']
    deepEqual(columns(pods), wide)
  }),
  check(28, 'a Table watch sends the columns once, in the first event', async (t) => {
    const path = await t.core('configmaps')
    await t.create(path, configMap('one'))
    const stream = await t.watch(`${path}?watch=1&fieldSelector=metadata.name!=kube-root-ca.crt`, { accept: table })
    await t.create(path, configMap('two'))
    const first = await stream.next()
    const second = await stream.next()
    equal(first?.object.kind, 'Table')
    deepEqual(columns(first!.object), ['Name', 'Data', 'Age'])
    equal(rows(first!.object)[0]?.cells[0], 'one')
    ok(!(second?.object.columnDefinitions as unknown[] | null | undefined)?.length)
    equal(rows(second!.object)[0]?.cells[0], 'two')
  }),
  check(29, 'partial metadata of lists, watches and writes carry no spec or data', async (t) => {
    const path = await t.core('configmaps')
    await t.create(path, configMap('one'))
    const query = 'fieldSelector=metadata.name%3Done'
    const list = (await t.get(`${path}?${query}`, { accept: partialList })).is(200)
    equal(list.kind, 'PartialObjectMetadataList')
    deepEqual([list.items[0]?.metadata.name, list.items[0]?.data], ['one', undefined])
    const stream = await t.watch(`${path}?watch=1&${query}`, { accept: partial })
    const event = await stream.next()
    deepEqual([event?.object.kind, event?.object.apiVersion], ['PartialObjectMetadata', 'meta.k8s.io/v1'])
    deepEqual([event?.object.metadata.name, event?.object.data], ['one', undefined])
    const body = configMap('two')
    const made = (await t.post(`${path}?dryRun=All`, body, { accept: partial })).is(201)
    const options = { accept: partial, body: { data: { a: 'c' } }, contentType: mergePatch }
    const patched = (await t.call('PATCH', `${path}/one?dryRun=All`, options)).is(200)
    for (const { kind, data, metadata } of [made, patched])
      deepEqual([kind, data, typeof metadata.uid], ['PartialObjectMetadata', undefined, 'string'])
    equal((await t.get(path, { accept: partial })).is(406).reason, 'NotAcceptable')
    equal((await t.get(`${path}/one`, { accept: partialList })).is(406).reason, 'NotAcceptable')
  }),
  check(30, "a CR's printer columns work, condition filters included; a missing value is null", async (t) => {
    const path = await t.group(sandboxes, 'sandboxes')
    const spec = { podTemplate: { spec: { containers: [{ name: 'c', image: 'i' }] } } }
    await t.create(path, { apiVersion: sandboxes, kind: 'Sandbox', metadata: { name: 'one' }, spec })
    const before = (await t.get(path, { accept: table })).is(200)
    equal(columns(before)[0], 'Name')
    const ready = columns(before).indexOf('Ready')
    ok(ready > 0, columns(before).join())
    equal(rows(before)[0]?.cells[ready] ?? null, null)
    await setReady(t, `${path}/one`)
    equal(rows((await t.get(path, { accept: table })).is(200))[0]?.cells[ready], 'True')
    const templates = await t.group('extensions.agents.x-k8s.io/v1beta1', 'sandboxtemplates')
    await t.create(templates, template('one'))
    equal(columns((await t.get(templates, { accept: table })).is(200))[0], 'Name')
  }),
]

async function setReady(t: Context, path: string): Promise<void> {
  const condition = {
    type: 'Ready',
    status: 'True',
    reason: 'R',
    message: 'm',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }
  const answer = await t.call('PATCH', `${path}/status`, {
    contentType: 'application/merge-patch+json',
    body: { status: { conditions: [condition] } },
  })
  answer.is(200)
}
