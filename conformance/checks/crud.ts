import { deepEqual, equal, match, notEqual, ok } from 'node:assert/strict'
import { type Check, check } from '../harness/check.js'
import { mergePatch } from '../harness/context.js'
import { at } from '../harness/kube-body.js'
import { configMap, extensions, lease, pod, sandbox, sandboxes, template } from '../harness/objects.js'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const leases = 'coordination.k8s.io/v1'

export const crud: readonly Check[] = [
  check(31, 'create sets uid, creationTimestamp, resourceVersion and generation; 201', async (t) => {
    const path = await t.group(sandboxes, 'sandboxes')
    const forged = {
      uid: 'mine',
      creationTimestamp: '2001-01-01T00:00:00Z',
      generation: 7,
      deletionTimestamp: '2001-01-01T00:00:00Z',
    }
    const { metadata } = await t.create(path, sandbox('one', { metadata: forged }))
    match(metadata.uid, uuid)
    match(metadata.creationTimestamp, /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    notEqual(metadata.creationTimestamp, forged.creationTimestamp)
    match(metadata.resourceVersion, /^[1-9]\d*$/)
    deepEqual([metadata.generation, metadata.deletionTimestamp, metadata.namespace], [1, undefined, await t.ns()])
    equal((await t.create(await t.core('configmaps'), configMap('one'))).metadata.generation, undefined)
  }),
  check(32, 'a body without kind and apiVersion works for Pods and is 400 for CRs', async (t) => {
    const stored = await t.create(await t.core('pods'), {
      metadata: { name: 'one' },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    })
    deepEqual([stored.kind, stored.apiVersion], ['Pod', 'v1'])
    const { spec } = sandbox('one') as { spec: object }
    equal(
      (await t.post(await t.group(sandboxes, 'sandboxes'), { metadata: { name: 'one' }, spec })).is(400).reason,
      'BadRequest',
    )
  }),
  check(33, 'a second create of the same name is 409 AlreadyExists with details', async (t) => {
    await t.create(await t.core('configmaps'), configMap('one'))
    const error = (await t.post(await t.core('configmaps'), configMap('one'))).is(409)
    deepEqual([error.reason, error.message], ['AlreadyExists', 'configmaps "one" already exists'])
    deepEqual(error.details, { name: 'one', kind: 'configmaps' })
    const path = await t.group(sandboxes, 'sandboxes')
    await t.create(path, sandbox('one'))
    const other = (await t.post(path, sandbox('one'))).is(409)
    deepEqual(other.details, { name: 'one', group: 'agents.x-k8s.io', kind: 'sandboxes' })
    equal(other.message, 'sandboxes.agents.x-k8s.io "one" already exists')
  }),
  check(34, 'generateName twice gives two names with five safe characters', async (t) => {
    const body = { metadata: { generateName: 'some-' }, data: {} }
    const [first, second] = [
      await t.create(await t.core('configmaps'), body),
      await t.create(await t.core('configmaps'), body),
    ]
    for (const { metadata } of [first, second]) match(metadata.name, /^some-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
    notEqual(first.metadata.name, second.metadata.name)
    const long = await t.create(await t.core('configmaps'), { metadata: { generateName: `${'a'.repeat(70)}` } })
    match(long.metadata.name, /^a{58}[bcdfghjklmnpqrstvwxz2456789]{5}$/)
  }),
  check(
    35,
    'a resourceVersion in a create body is refused',
    async (t) => {
      const error = (await t.post(await t.core('configmaps'), { metadata: { name: 'one', resourceVersion: '12' } })).is(
        400,
        422,
        500,
      )
      match(error.message, /resourceVersion should not be set on objects to be created/)
      if (t.isEmbedded) ok(error.code < 500)
    },
    { differs: 'the real one answers 500 here, the embedded one 400' },
  ),
  check(36, 'a namespace or name that disagrees with the URL is 400', async (t) => {
    const path = await t.core('configmaps')
    const error = (await t.post(path, { metadata: { name: 'one', namespace: 'elsewhere' } })).is(400)
    match(error.message, /namespace of the provided object does not match the namespace sent on the request/)
    await t.create(path, configMap('one'))
    const wrong = (await t.put(`${path}/one`, configMap('two'))).is(400)
    match(wrong.message, /name of the object \(two\) does not match the name on the URL \(one\)/)
  }),
  check(37, 'create in a missing namespace is 404, in a terminating one 403 with its cause', async (t) => {
    const missing = (await t.post('/api/v1/namespaces/not-there/configmaps', configMap('one'))).is(404)
    deepEqual([missing.message, missing.details.kind], ['namespaces "not-there" not found', 'namespaces'])
    const name = await t.newNamespace()
    const path = `/api/v1/namespaces/${name}/configmaps`
    await t.create(path, { metadata: { name: 'held', finalizers: ['example.com/hold'] } })
    ;(await t.del(`/api/v1/namespaces/${name}`)).is(200)
    const error = (await t.post(path, configMap('late'))).is(403)
    equal(error.reason, 'Forbidden')
    match(
      error.message,
      /^configmaps "late" is forbidden: unable to create new content in namespace .* because it is being terminated$/,
    )
    ok(
      error.details.causes?.some(
        ({ reason, field }) => reason === 'NamespaceTerminating' && field === 'metadata.namespace',
      ),
    )
    await t.eventually(
      'released',
      async () => (await t.patch(`${path}/held`, mergePatch, { metadata: { finalizers: null } })).status < 500,
    )
  }),
  check(38, 'an invalid name is 422 and names the field', async (t) => {
    const error = (await t.post(await t.core('configmaps'), configMap('Not_valid'))).is(422)
    equal(error.reason, 'Invalid')
    match(error.message, /^ConfigMap "Not_valid" is invalid: metadata\.name: Invalid value: "Not_valid"/)
    deepEqual([error.details.kind, error.details.causes?.[0]?.field], ['ConfigMap', 'metadata.name'])
    equal(error.details.causes?.[0]?.reason, 'FieldValueInvalid')
    const nameless = (await t.post(await t.core('configmaps'), { metadata: {} })).is(422)
    equal(nameless.details.causes?.[0]?.reason, 'FieldValueRequired')
  }),
  check(39, 'GET of nothing is 404 with the plural in details.kind', async (t) => {
    const error = (await t.get(await t.core('pods', 'x'))).is(404)
    deepEqual(
      [error.reason, error.message, error.details],
      ['NotFound', 'pods "x" not found', { name: 'x', kind: 'pods' }],
    )
    const custom = (await t.get(await t.group(sandboxes, 'sandboxes', 'x'))).is(404)
    equal(custom.message, 'sandboxes.agents.x-k8s.io "x" not found')
    deepEqual(custom.details, { name: 'x', group: 'agents.x-k8s.io', kind: 'sandboxes' })
  }),
  check(40, 'PUT with a stale resourceVersion is 409 Conflict', async (t) => {
    const path = await t.core('configmaps')
    const stored = await t.create(path, configMap('one'))
    ;(await t.put(`${path}/one`, { ...stored, data: { a: '2' } })).is(200)
    const error = (await t.put(`${path}/one`, { ...stored, data: { a: '3' } })).is(409)
    equal(error.reason, 'Conflict')
    const tail = 'the object has been modified; please apply your changes to the latest version and try again'
    equal(error.message, `Operation cannot be fulfilled on configmaps "one": ${tail}`)
  }),
  check(41, 'PUT without a resourceVersion: 200 for ConfigMaps, 422 for CRs and Leases', async (t) => {
    await t.create(await t.core('configmaps'), configMap('one'))
    ;(await t.put(await t.core('configmaps', 'one'), configMap('one', { a: '2' }))).is(200)
    await t.create(await t.group(sandboxes, 'sandboxes'), sandbox('one'))
    await t.create(await t.group(leases, 'leases'), lease('one', 'me'))
    const custom = (await t.put(await t.group(sandboxes, 'sandboxes', 'one'), sandbox('one'))).is(422)
    match(custom.message, /metadata\.resourceVersion: Invalid value: .*must be specified for an update/)
    const held = (await t.put(await t.group(leases, 'leases', 'one'), lease('one', 'you'))).is(422)
    match(held.message, /must be specified for an update/)
  }),
  check(42, 'PUT of the same object keeps the resourceVersion and sends no event', async (t) => {
    const path = await t.core('configmaps')
    const stored = await t.create(path, configMap('one'))
    const stream = await t.watch(`${path}?watch=1&resourceVersion=${stored.metadata.resourceVersion}`)
    const again = (await t.put(`${path}/one`, stored)).is(200)
    equal(again.metadata.resourceVersion, stored.metadata.resourceVersion)
    await t.create(path, configMap('marker'))
    const events = await stream.until(({ object }) => object.metadata.name === 'marker')
    deepEqual(
      events.filter(({ object }) => object.metadata.name === 'one'),
      [],
    )
  }),
  check(43, 'uid, creationTimestamp and generation in a PUT body are refused or ignored', async (t) => {
    const path = await t.group(sandboxes, 'sandboxes')
    const stored = await t.create(path, sandbox('one'))
    const put = (change: object) => t.put(`${path}/one`, { ...stored, metadata: { ...stored.metadata, ...change } })
    const foreign = (await put({ uid: '11111111-1111-4111-8111-111111111111' })).is(409)
    match(foreign.message, /Precondition failed: UID in precondition: .*, UID in object meta: /)
    const kept = (await put({ creationTimestamp: '2001-01-01T00:00:00Z', generation: 40 })).is(200, 422)
    if (kept.kind !== 'Status') {
      deepEqual([kept.metadata.creationTimestamp, kept.metadata.generation], [stored.metadata.creationTimestamp, 1])
    }
    const after = (await t.get(`${path}/one`)).is(200).metadata
    deepEqual(
      [after.uid, after.creationTimestamp, after.generation],
      [stored.metadata.uid, stored.metadata.creationTimestamp, 1],
    )
  }),
  check(44, 'a spec change of a CR counts in generation; metadata and status changes do not', async (t) => {
    const path = await t.group(sandboxes, 'sandboxes')
    await t.create(path, sandbox('one'))
    const patched = async (suffix: string, body: object) =>
      (await t.patch(`${path}/one${suffix}`, mergePatch, body)).is(200).metadata
    equal((await patched('', { spec: { operatingMode: 'Suspended' } })).generation, 2)
    equal((await patched('', { metadata: { labels: { a: 'b' } } })).generation, 2)
    const condition = {
      type: 'Ready',
      status: 'False',
      reason: 'R',
      message: 'm',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    }
    equal((await patched('/status', { status: { conditions: [condition] } })).generation, 2)
    equal((await patched('', { spec: { operatingMode: 'Running' } })).generation, 3)
  }),
  check(45, 'the main resource cannot change status, /status cannot change spec or labels', async (t) => {
    const path = await t.group(sandboxes, 'sandboxes')
    await t.create(path, sandbox('one'))
    const stored = (await t.get(`${path}/one`)).is(200)
    const change = {
      spec: { ...(stored.spec as object), operatingMode: 'Suspended' },
      status: { serviceFQDN: 'x.example.com' },
    }
    const main = (await t.put(`${path}/one`, { ...stored, ...change })).is(200)
    deepEqual([at(main, 'status.serviceFQDN'), at(main, 'spec.operatingMode')], [undefined, 'Suspended'])
    const labelled = { ...main.metadata, labels: { a: 'b' } }
    const spec = { ...(main.spec as object), operatingMode: 'Running' }
    const status = (
      await t.put(`${path}/one/status`, { ...main, spec, metadata: labelled, status: { serviceFQDN: 'y.example.com' } })
    ).is(200)
    deepEqual([at(status, 'status.serviceFQDN'), at(status, 'spec.operatingMode')], ['y.example.com', 'Suspended'])
    equal(status.metadata.labels, undefined)
  }),
  check(46, 'status in a create body of a kind with a status sub-resource is dropped', async (t) => {
    const body = { ...sandbox('one'), status: { serviceFQDN: 'x.example.com' } }
    equal(at(await t.create(await t.group(sandboxes, 'sandboxes'), body), 'status.serviceFQDN'), undefined)
    const started = { ...pod('one'), status: { phase: 'Running', podIP: '10.0.0.1' } }
    const stored = await t.create(await t.core('pods'), started)
    deepEqual([at(stored, 'status.phase'), at(stored, 'status.podIP')], ['Pending', undefined])
  }),
  check(47, '/status of a kind without that sub-resource is 404', async (t) => {
    const path = await t.group(extensions, 'sandboxtemplates')
    await t.create(path, template('one'))
    equal((await t.get(`${path}/one/status`)).status, 404)
    equal((await t.get(await t.core('configmaps', 'kube-root-ca.crt/status'))).status, 404)
  }),
  check(48, 'PUT creates a Lease, not a ConfigMap', async (t) => {
    const stored = (await t.put(await t.group(leases, 'leases', 'one'), lease('one', 'me'))).is(201)
    equal(at(stored, 'spec.renewTime'), '2026-01-02T03:04:05.678901Z')
    equal((await t.put(await t.core('configmaps', 'one'), configMap('one'))).is(404).reason, 'NotFound')
  }),
  check(49, 'a body over 3 MiB is 413; annotations over 256 KiB and data over 1 MiB are 422', async (t) => {
    const path = await t.core('configmaps')
    const huge = (await t.post(path, configMap('huge', { a: 'x'.repeat(3 * 1024 * 1024 + 10) }))).is(413)
    equal(huge.reason, 'RequestEntityTooLarge')
    const annotations = { a: 'x'.repeat(256 * 1024 + 1) }
    const error = (await t.post(path, { metadata: { name: 'big', annotations } })).is(422)
    match(error.message, /metadata\.annotations: Too long: may not be more than 262144 bytes/)
    const much = 'x'.repeat(1024 * 1024 + 1)
    const refused = (await t.post(path, configMap('much', { a: much }))).is(422)
    deepEqual(refused.details.causes?.[0]?.reason, 'FieldValueTooLong')
    const secret = { metadata: { name: 'much' }, stringData: { a: much } }
    equal((await t.post(await t.core('secrets'), secret)).is(422).details.causes?.[0]?.field, 'data')
  }),
  check(50, 'dryRun=All leaves no trace and no event', async (t) => {
    const path = await t.core('configmaps')
    const stored = await t.create(path, configMap('kept'))
    const stream = await t.watch(`${path}?watch=1&resourceVersion=${stored.metadata.resourceVersion}`)
    const created = (await t.post(`${path}?dryRun=All`, configMap('tried'))).is(201)
    match(created.metadata.uid, uuid)
    const patched = (await t.patch(`${path}/kept?dryRun=All`, mergePatch, { data: { a: '2' } })).is(200)
    equal(patched.data.a, '2')
    ;(await t.del(`${path}/kept?dryRun=All`)).is(200)
    ;(await t.post(`${path}?dryRun=Some`, configMap('tried'))).is(422)
    equal((await t.get(`${path}/tried`)).status, 404)
    const after = (await t.get(`${path}/kept`)).is(200)
    deepEqual([after.metadata.resourceVersion, after.data.a], [stored.metadata.resourceVersion, '1'])
    await t.create(path, configMap('marker'))
    const events = await stream.until(({ object }) => object.metadata.name === 'marker')
    deepEqual(
      events.map(({ object }) => object.metadata.name).filter((name) => name !== 'kube-root-ca.crt'),
      ['marker'],
    )
  }),
]
