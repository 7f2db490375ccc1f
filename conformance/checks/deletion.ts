import { deepEqual, equal, match, notEqual, ok } from 'node:assert/strict'
import { type Check, check } from '../harness/check.js'
import { type Context, mergePatch } from '../harness/context.js'
import { at, type KubeBody } from '../harness/kube-body.js'
import { configMap, crd, pod, sandbox, sandboxes } from '../harness/objects.js'

const owner = ({ metadata, kind, apiVersion }: KubeBody, more: object = {}): object => ({
  apiVersion,
  kind,
  name: metadata.name,
  uid: metadata.uid,
  ...more,
})

async function family(t: Context, more: object = {}): Promise<{ parent: string; child: string }> {
  const path = await t.core('configmaps')
  const parent = await t.create(path, configMap('parent'))
  await t.create(path, { ...configMap('child'), metadata: { name: 'child', ownerReferences: [owner(parent, more)] } })
  return { parent: `${path}/parent`, child: `${path}/child` }
}

export const deletion: readonly Check[] = [
  check(
    90,
    'without finalizers an object is gone at once; the answer is the object or a Status, by kind',
    async (t) => {
      const config = await t.create(await t.core('configmaps'), configMap('one'))
      const status = (await t.del(await t.core('configmaps', 'one'))).is(200)
      deepEqual([status.kind, status.status], ['Status', 'Success'])
      deepEqual(status.details, { name: 'one', kind: 'configmaps', uid: config.metadata.uid })
      equal((await t.get(await t.core('configmaps', 'one'))).status, 404)
      await t.create(await t.group(sandboxes, 'sandboxes'), sandbox('one'))
      const custom = (await t.del(await t.group(sandboxes, 'sandboxes', 'one'))).is(200)
      deepEqual([custom.kind, custom.details.group, custom.details.kind], ['Status', 'agents.x-k8s.io', 'sandboxes'])
      await t.create(await t.core('pods'), pod('one'))
      equal((await t.del(await t.core('pods', 'one'))).is(200).kind, 'Pod')
      await t.create(await t.core('services'), { metadata: { name: 'one' }, spec: { ports: [{ port: 80 }] } })
      equal((await t.del(await t.core('services', 'one'))).is(200).kind, 'Service')
      await t.create(await t.core('serviceaccounts'), { metadata: { name: 'one' } })
      equal((await t.del(await t.core('serviceaccounts', 'one'))).is(200).kind, 'ServiceAccount')
    },
  ),
  check(91, 'a finalizer holds the object; a second delete changes nothing; clearing removes it', async (t) => {
    const path = await t.group(sandboxes, 'sandboxes', 'one')
    await t.create(
      await t.group(sandboxes, 'sandboxes'),
      sandbox('one', { metadata: { finalizers: ['example.com/hold'] } }),
    )
    const marked = (await t.del(path)).is(200)
    ok(marked.metadata.deletionTimestamp)
    deepEqual([marked.metadata.deletionGracePeriodSeconds, marked.metadata.generation], [0, 2])
    const again = (await t.del(path)).is(200)
    deepEqual(again.metadata.resourceVersion, marked.metadata.resourceVersion)
    const released = (await t.patch(path, mergePatch, { metadata: { finalizers: null } })).is(200)
    equal(released.kind, 'Sandbox')
    equal((await t.get(path)).status, 404)
  }),
  check(92, 'no finalizer may be added while deleting', async (t) => {
    const path = await t.core('configmaps', 'one')
    await t.create(await t.core('configmaps'), { metadata: { name: 'one', finalizers: ['example.com/hold'] } })
    ;(await t.del(path)).is(200)
    const error = (
      await t.patch(path, mergePatch, { metadata: { finalizers: ['example.com/hold', 'example.com/more'] } })
    ).is(422)
    match(
      error.message,
      /metadata\.finalizers: Forbidden: no new finalizers can be added if the object is being deleted/,
    )
    ;(await t.patch(path, mergePatch, { metadata: { finalizers: [] } })).is(200)
  }),
  check(93, 'preconditions on uid and version are 409 when they do not hold', async (t) => {
    const path = await t.core('configmaps', 'one')
    const stored = await t.create(await t.core('configmaps'), configMap('one'))
    const uid = (await t.del(path, { preconditions: { uid: '11111111-1111-4111-8111-111111111111' } })).is(409)
    equal(uid.reason, 'Conflict')
    match(uid.message, /the UID in the precondition \(.*\) does not match the UID in record \(.*\)/)
    equal((await t.del(path, { preconditions: { resourceVersion: '1' } })).is(409).reason, 'Conflict')
    const { uid: right, resourceVersion } = stored.metadata
    ;(await t.del(path, { preconditions: { uid: right, resourceVersion } })).is(200)
  }),
  check(94, "a pod's grace: its own, explicit, only ever shorter, 0 at once; unscheduled at once", async (t) => {
    const collection = await t.core('pods')
    const bound = (name: string): Promise<KubeBody> =>
      t.create(collection, pod(name, { spec: { nodeName: 'nowhere' } }))
    await bound('own')
    const own = (await t.del(`${collection}/own`)).is(200)
    equal(own.metadata.deletionGracePeriodSeconds, 30)
    const shorter = (await t.del(`${collection}/own`, { gracePeriodSeconds: 5 })).is(200)
    equal(shorter.metadata.deletionGracePeriodSeconds, 5)
    const longer = (await t.del(`${collection}/own`, { gracePeriodSeconds: 50 })).is(200)
    equal(longer.metadata.deletionGracePeriodSeconds, 5)
    ;(await t.del(`${collection}/own`, { gracePeriodSeconds: 0 })).is(200)
    equal((await t.get(`${collection}/own`)).status, 404)
    await t.create(collection, pod('free'))
    ;(await t.del(`${collection}/free`)).is(200)
    equal((await t.get(`${collection}/free`)).status, 404)
  }),
  check(95, 'background: dependents vanish after the owner', async (t) => {
    const { parent, child } = await family(t)
    ;(await t.del(parent, { propagationPolicy: 'Background' })).is(200)
    equal((await t.get(parent)).status, 404)
    await t.gone(child)
  }),
  check(96, 'foreground: the owner stays until blocking dependents are gone', async (t) => {
    const { parent, child } = await family(t, { blockOwnerDeletion: true })
    ;(await t.patch(child, mergePatch, { metadata: { finalizers: ['example.com/hold'] } })).is(200)
    const held = (await t.del(parent, { propagationPolicy: 'Foreground' })).is(200)
    deepEqual(held.metadata.finalizers, ['foregroundDeletion'])
    await t.eventually('child is deleting', async () => (await t.get(child)).is(200).metadata.deletionTimestamp)
    equal((await t.get(parent)).status, 200)
    ;(await t.patch(child, mergePatch, { metadata: { finalizers: null } })).is(200)
    await t.gone(parent)
  }),
  check(97, 'orphan: dependents stay, without the reference', async (t) => {
    const { parent, child } = await family(t)
    ;(await t.del(parent, { propagationPolicy: 'Orphan' })).is(200)
    await t.gone(parent)
    equal((await t.get(child)).is(200).metadata.ownerReferences?.length ?? 0, 0)
  }),
  check(98, 'a dependent with two owners lives until both are gone', async (t) => {
    const path = await t.core('configmaps')
    const owners = [await t.create(path, configMap('a')), await t.create(path, configMap('b'))]
    await t.create(path, { metadata: { name: 'child', ownerReferences: owners.map((one) => owner(one)) } })
    ;(await t.del(`${path}/a`)).is(200)
    await t.eventually('one reference left', async () => {
      const references = (await t.get(`${path}/child`)).is(200).metadata.ownerReferences
      return references?.length === 1
    })
    ;(await t.del(`${path}/b`)).is(200)
    await t.gone(`${path}/child`)
  }),
  check(99, 'a dependent whose owner never existed is collected', async (t) => {
    const path = await t.core('configmaps')
    const nobody = { apiVersion: 'v1', kind: 'ConfigMap', name: 'ghost', uid: '11111111-1111-4111-8111-111111111111' }
    await t.create(path, { metadata: { name: 'child', ownerReferences: [nobody] } })
    await t.gone(`${path}/child`)
  }),
  check(100, 'deletecollection honours a label selector', async (t) => {
    const path = await t.core('secrets')
    await t.create(path, { metadata: { name: 'a', labels: { go: 'yes' } } })
    await t.create(path, { metadata: { name: 'b', labels: { go: 'yes' } } })
    await t.create(path, { metadata: { name: 'c' } })
    const answer = (await t.del(`${path}?labelSelector=go%3Dyes`)).is(200)
    equal(answer.kind, 'SecretList')
    deepEqual(
      answer.items.map(({ metadata }) => metadata.name),
      ['a', 'b'],
    )
    deepEqual(
      (await t.get(path)).is(200).items.map(({ metadata }) => metadata.name),
      ['c'],
    )
  }),
  check(101, 'deleting a namespace empties it of every kind, then it is gone and can be made anew', async (t) => {
    const name = await t.newNamespace()
    const path = `/api/v1/namespaces/${name}`
    const before = (await t.get(path)).is(200)
    await t.create(`${path}/configmaps`, configMap('one'))
    await t.create(`${path}/pods`, pod('one'))
    await t.create(`/apis/${sandboxes}/namespaces/${name}/sandboxes`, sandbox('one'))
    const terminating = (await t.del(path)).is(200)
    deepEqual([terminating.kind, at(terminating, 'status.phase')], ['Namespace', 'Terminating'])
    await t.gone(path)
    const again = (await t.post('/api/v1/namespaces', { metadata: { name } })).is(201)
    notEqual(again.metadata.uid, before.metadata.uid)
    const left = (await t.get(`/apis/${sandboxes}/namespaces/${name}/sandboxes`)).is(200)
    deepEqual(left.items, [])
  }),
  check(102, 'deleting a CRD removes its objects and its discovery; it can be made anew', async (t) => {
    const group = `${t.unique('gone')}.example.com`
    const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    const body = crd({
      plural: 'things',
      group,
      kind: 'Thing',
      schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    })
    t.after(async () => void (await t.del(`${crds}/things.${group}`)))
    const path = await t.group(`${group}/v1`, 'things')
    const thing = { apiVersion: `${group}/v1`, kind: 'Thing', metadata: { name: 'one' } }
    const make = async (): Promise<void> => {
      await t.create(crds, body)
      await t.eventually('served', async () => (await t.post(path, thing)).status === 201)
    }
    await make()
    ;(await t.del(`${crds}/things.${group}`)).is(200)
    await t.gone(`${crds}/things.${group}`)
    await t.eventually('not discovered', async () => {
      const groups = (await t.get('/apis')).is(200).groups as { name: string }[]
      return !groups.some(({ name }) => name === group)
    })
    equal((await t.get(path)).status, 404)
    await make()
    equal((await t.get(path)).is(200).items.length, 1)
  }),
  check(103, 'an eviction deletes the pod', async (t) => {
    const path = await t.core('pods', 'one')
    await t.create(await t.core('pods'), pod('one'))
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'one', namespace: await t.ns() } }
    const answer = (await t.post(`${path}/eviction`, eviction)).is(201)
    deepEqual([answer.kind, answer.status], ['Status', 'Success'])
    await t.gone(path)
  }),
]
