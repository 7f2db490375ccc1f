import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { connect } from 'node:tls'
import { type Check, check } from '../harness/check.js'
import { at } from '../harness/kube-body.js'

export const transport: readonly Check[] = [
  check(1, 'TLS handshake with the CA succeeds; names cover 127.0.0.1 and localhost', async ({ server }) => {
    const { hostname, port } = new URL(server.target.url)
    for (const servername of ['localhost', undefined]) {
      const socket = connect({
        host: hostname,
        port: Number(port),
        ca: server.target.ca,
        ...(servername && { servername }),
      })
      await new Promise<void>((resolve, reject) => {
        socket.once('secureConnect', resolve)
        socket.once('error', reject)
      })
      ok(socket.authorized)
      match(socket.getPeerCertificate().subjectaltname ?? '', /DNS:localhost.*IP Address:127\.0\.0\.1/)
      socket.destroy()
    }
  }),
  check(
    2,
    'no credentials are answered with 401 and a Status',
    async (t) => {
      const body = (await t.get('/api/v1/namespaces', { token: null })).is(401, 403)
      equal(body.kind, 'Status')
      equal(body.status, 'Failure')
      // A real server lets anonymous users in and then forbids; ours knows no anonymous user.
      if (t.isEmbedded) deepEqual([body.code, body.reason, body.message], [401, 'Unauthorized', 'Unauthorized'])
      else equal(body.reason, 'Forbidden')
    },
    { differs: 'the real one authenticates anonymous users and answers 403; the embedded one has none' },
  ),
  check(3, 'a wrong token is 401, the right one 200', async (t) => {
    const wrong = (await t.get('/api/v1/namespaces', { token: 'not-the-token' })).is(401)
    equal(wrong.reason, 'Unauthorized')
    equal((await t.get('/api/v1/namespaces')).is(200).kind, 'NamespaceList')
  }),
  check(4, 'a client certificate is accepted; SelfSubjectReview shows CN and O', async (t) => {
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const body = (await t.post(path, review, { withCertificate: true })).is(201)
    equal(at(body, 'status.userInfo.username'), 'corral-admin')
    const groups = at(body, 'status.userInfo.groups') as string[]
    ok(groups.includes('system:masters') && groups.includes('system:authenticated'), groups.join())
  }),
  check(5, '/livez and /readyz say ok, without credentials too', async (t) => {
    for (const path of ['/livez', '/readyz', '/healthz']) {
      for (const token of [t.server.target.token, null]) {
        const answer = await t.get(path, { token })
        deepEqual([answer.status, answer.text], [200, 'ok'], path)
        match(answer.headers['content-type'] ?? '', /^text\/plain/)
      }
    }
  }),
  check(6, '/version and /version/ parse and name a minor of at least 33', async (t) => {
    for (const path of ['/version', '/version/']) {
      const body = (await t.get(path, { token: null })).is(200)
      equal(body.major, '1')
      ok(Number.parseInt(String(body.minor), 10) >= 33, String(body.minor))
      match(String(body.gitVersion), /^v1\.\d+\.\d+/)
      for (const field of ['gitCommit', 'gitTreeState', 'buildDate', 'goVersion', 'compiler', 'platform']) {
        equal(typeof body[field], 'string', field)
      }
    }
  }),
  check(139, 'who asks to act as another user without the right to is 403', async (t) => {
    const namespace = await t.ns()
    await t.create(await t.core('serviceaccounts'), { metadata: { name: 'robot' } })
    const issued = await t.create(`${await t.core('serviceaccounts', 'robot')}/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 600 },
    })
    const token = String(at(issued, 'status.token'))
    const headers = { 'impersonate-user': 'jane' }
    const error = (await t.get('/api/v1/namespaces', { token, headers })).is(403)
    const robot = `system:serviceaccount:${namespace}:robot`
    equal(
      error.message,
      `users "jane" is forbidden: User "${robot}" cannot impersonate resource "users" in API group "" at the cluster scope`,
    )
    // The administrator may on a real server; an embedded one has no other user.
    if (t.isEmbedded) (await t.get('/api/v1/namespaces', { headers })).is(403)
  }),
]
