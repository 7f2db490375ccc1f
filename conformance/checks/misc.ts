import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { watchWithInformer } from '../clients/client-node.js'
import { runPython } from '../clients/python.js'
import { type Check, check } from '../harness/check.js'
import { mergePatch } from '../harness/context.js'
import { at } from '../harness/kube-body.js'
import { anyKubectl } from '../harness/kubectl.js'
import { lease, pod } from '../harness/objects.js'

const now = (): string => new Date().toISOString().replace(/\.\d+Z$/, 'Z')

export const clients: readonly Check[] = [
  check(
    85,
    'kubectl wait, with WatchList on and off',
    async (t) => {
      for (const [index, value] of ['true', 'false'].entries()) {
        const name = `pod-${index}`
        await t.create(await t.core('pods'), pod(name))
        const waiting = t.ok(anyKubectl, ['wait', '--for=condition=Ready', `pod/${name}`, '--timeout=20s'], {
          env: { KUBE_FEATURE_WatchListClient: value },
        })
        const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: now() }]
        ;(
          await t.patch(`${await t.core('pods', name)}/status`, mergePatch, {
            status: { phase: 'Running', conditions },
          })
        ).is(200)
        match(await waiting, /condition met/)
      }
    },
    { heavy: true },
  ),
  check(
    86,
    'a client-node informer hears add, update and delete, and goes on after the server restarts',
    async (t) => {
      const [path, namespace] = [await t.core('secrets'), await t.ns()]
      const informer = await watchWithInformer(t.server.kubeconfig, namespace)
      t.after(() => informer.stop())
      await t.create(path, { metadata: { name: 'one' } })
      ;(await t.patch(`${path}/one`, mergePatch, { metadata: { labels: { a: 'b' } } })).is(200)
      ;(await t.del(`${path}/one`)).is(200)
      await t.eventually('heard', async () => informer.heard.join() === 'add one,update one,delete one')
      await t.create(path, { metadata: { name: 'kept' } })
      await t.eventually('kept', async () => informer.names().join() === 'kept')
      await t.server.restart()
      // In memory nothing outlives a restart: the namespace is made again, and the informer finds its Secret gone.
      if ((await t.get(`/api/v1/namespaces/${namespace}`)).status === 404)
        await t.create('/api/v1/namespaces', { metadata: { name: namespace } })
      await t.create(path, { metadata: { name: 'after' } })
      const there = (await t.get(path)).is(200).items.map(({ metadata }) => metadata.name)
      await t.eventually('the same as listed', async () => informer.names().join() === there.join())
      ok(informer.heard.includes('add after'), informer.heard.join())
    },
    { exclusive: true },
  ),
  check(
    87,
    "Python's watch streams, times out and resumes",
    async (t) => {
      equal((await runPython(t, 'watching', [await t.ns()])).out.trim(), 'one,two')
    },
    { heavy: true },
  ),
]

export const reviewsAndMore: readonly Check[] = [
  check(
    124,
    'kubectl auth can-i, can-i --list and whoami on 1.31 (JSON) and 1.33 (protobuf)',
    async (t) => {
      for (const version of ['1.31', '1.33']) {
        match(await t.ok(version, ['auth', 'can-i', 'create', 'pods']), /^yes/)
        match(await t.ok(version, ['auth', 'can-i', '--list']), /\*\.\*/)
        match(await t.ok(version, ['auth', 'whoami']), /corral-admin/)
      }
    },
    { heavy: true },
  ),
  check(
    125,
    "a service account's token authenticates, TokenReview confirms it, an expired or broken one is 401",
    async (t) => {
      const namespace = await t.ns()
      await t.create(await t.core('serviceaccounts'), { metadata: { name: 'robot' } })
      const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 600 } }
      const issued = (await t.post(`${await t.core('serviceaccounts', 'robot')}/token`, request)).is(201)
      const token = String(at(issued, 'status.token'))
      ok(Date.parse(String(at(issued, 'status.expirationTimestamp'))) > Date.now())
      const username = `system:serviceaccount:${namespace}:robot`
      const self = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
      const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
      equal(at((await t.post(path, self, { token })).is(201), 'status.userInfo.username'), username)
      const review = (value: string) =>
        t.post('/apis/authentication.k8s.io/v1/tokenreviews', {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenReview',
          spec: { token: value },
        })
      const confirmed = (await review(token)).is(201)
      deepEqual([at(confirmed, 'status.authenticated'), at(confirmed, 'status.user.username')], [true, username])
      // Signed anew with nothing changed it still holds, so what refuses it afterwards is the time alone.
      const same = t.server.resignToken(token, (claims) => claims)
      equal(at((await t.post(path, self, { token: same })).is(201), 'status.userInfo.username'), username)
      const expired = t.server.resignToken(token, ({ iat, nbf, exp, ...rest }) => ({
        ...rest,
        iat: iat - 3600,
        nbf: nbf - 3600,
        exp: exp - 3600,
      }))
      const broken = `${token.slice(0, -6)}AAAAAA`
      for (const refused of [expired, broken]) {
        ok(!at((await review(refused)).is(201), 'status.authenticated'))
        equal((await t.post(path, self, { token: refused })).is(401).reason, 'Unauthorized')
      }
      equal((await t.get('/api/v1/secrets', { token })).is(403).reason, 'Forbidden')
      ;(
        await t.post(`${await t.core('serviceaccounts', 'robot')}/token`, {
          ...request,
          spec: { expirationSeconds: 1 },
        })
      ).is(422)
    },
  ),
  check(
    126,
    'events written through one API are seen through the other; describe shows them',
    async (t) => {
      const namespace = await t.ns()
      const subject = await t.create(await t.core('pods'), pod('one'))
      const object = { kind: 'Pod', apiVersion: 'v1', name: 'one', namespace, uid: subject.metadata.uid }
      const old = {
        metadata: { name: 'from-core', namespace },
        involvedObject: object,
        reason: 'Old',
        message: 'from core',
        type: 'Normal',
        source: { component: 'me' },
        count: 2,
        firstTimestamp: now(),
        lastTimestamp: now(),
      }
      await t.create(await t.core('events'), old)
      const newer = {
        metadata: { name: 'from-new', namespace },
        regarding: object,
        reason: 'New',
        note: 'from new',
        type: 'Warning',
        action: 'Doing',
        reportingController: 'example.com/me',
        reportingInstance: 'i',
        eventTime: '2026-01-02T03:04:05.678901Z',
      }
      await t.create(await t.group('events.k8s.io/v1', 'events'), newer)
      const asNew = (await t.get(await t.group('events.k8s.io/v1', 'events', 'from-core'))).is(200)
      deepEqual([asNew.note, at(asNew, 'regarding.name'), asNew.deprecatedCount], ['from core', 'one', 2])
      const asOld = (await t.get(await t.core('events', 'from-new'))).is(200)
      deepEqual(
        [asOld.message, at(asOld, 'involvedObject.name'), asOld.eventTime, asOld.reportingComponent],
        ['from new', 'one', '2026-01-02T03:04:05.678901Z', 'example.com/me'],
      )
      const text = await t.ok(anyKubectl, ['describe', 'pod/one'])
      match(text, /Old .*from core/)
      match(text, /New .*from new/)
    },
    { heavy: true },
  ),
  check(127, 'of two candidates for a lease one wins and the other gets 409', async (t) => {
    const path = await t.group('coordination.k8s.io/v1', 'leases')
    const stored = await t.create(path, lease('leader', 'nobody'))
    const take = (holder: string) =>
      t.put(`${path}/leader`, { ...stored, spec: { ...(stored.spec as object), holderIdentity: holder } })
    const answers = await Promise.all([take('a'), take('b')])
    deepEqual(answers.map(({ status }) => status).sort(), [200, 409])
    const winner = answers.find(({ status }) => status === 200)
    equal(at((await t.get(`${path}/leader`)).is(200), 'spec.holderIdentity'), at(winner?.body, 'spec.holderIdentity'))
  }),
  check(128, 'EndpointSlices follow the readiness of pods', async (t) => {
    // A real server only lists pods of nodes it knows; no kubelet runs this one.
    const nodeName = t.unique('idle')
    await t.create('/api/v1/nodes', { metadata: { name: nodeName } })
    t.after(async () => void (await t.del(`/api/v1/nodes/${nodeName}`)))
    await t.create(await t.core('services'), {
      metadata: { name: 'web' },
      spec: { selector: { app: 'web' }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
    })
    await t.create(await t.core('pods'), pod('one', { metadata: { labels: { app: 'web' } }, spec: { nodeName } }))
    const setReady = async (status: string): Promise<void> => {
      const conditions = [{ type: 'Ready', status, lastTransitionTime: now() }]
      const body = { status: { phase: 'Running', podIP: '10.9.8.7', podIPs: [{ ip: '10.9.8.7' }], conditions } }
      ;(await t.patch(`${await t.core('pods', 'one')}/status`, mergePatch, body)).is(200)
    }
    const slices = `${await t.group('discovery.k8s.io/v1', 'endpointslices')}?labelSelector=kubernetes.io/service-name%3Dweb`
    const endpoint = async (ready: boolean): Promise<unknown> => {
      const list = (await t.get(slices)).is(200)
      const found = at(list, 'items.0.endpoints.0')
      return at(found, 'conditions.ready') === ready && found
    }
    await setReady('True')
    const there = await t.eventually('ready', () => endpoint(true), 20_000)
    deepEqual(
      [at(there, 'addresses.0'), at(there, 'targetRef.name'), at(there, 'nodeName')],
      ['10.9.8.7', 'one', nodeName],
    )
    await setReady('False')
    await t.eventually('not ready', () => endpoint(false), 20_000)
    await t.del(await t.core('pods', 'one'), { gracePeriodSeconds: 0 })
  }),
]
