import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiServer, createApiServer } from '../server/api-server.js'
import { memoryStorage } from '../storage/memory-storage.js'
import { writeKubeconfig } from './kubeconfig.js'
import { type HttpsEndpoint, serveHttps } from './serve-https.js'

let directory: string
let server: ApiServer
let endpoint: HttpsEndpoint
const agent = new Agent({ keepAlive: true })

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'corral-https-'))
  server = await createApiServer({ storage: memoryStorage() })
  endpoint = await serveHttps({ server, port: 0, dataDir: directory })
})

afterAll(async () => {
  agent.destroy()
  await endpoint.close()
  await server.close()
  rmSync(directory, { recursive: true, force: true })
})

interface Call {
  method?: string
  headers?: Record<string, string>
  body?: string | Buffer
  /** Which credentials go along; the token unless said otherwise. */
  as?: 'token' | 'certificate' | 'nobody'
}

function open(path: string, call: Call = {}): Promise<IncomingMessage> {
  const { method = 'GET', headers = {}, body, as = 'token' } = call
  return new Promise((resolve, reject) => {
    const outgoing = request(
      endpoint.url + path,
      {
        method,
        ca: endpoint.tls.ca.cert,
        agent: as === 'certificate' ? undefined : agent,
        ...(as === 'certificate' ? { cert: endpoint.tls.admin.cert, key: endpoint.tls.admin.key } : {}),
        headers: { ...(as === 'token' ? { authorization: `Bearer ${endpoint.token}` } : {}), ...headers },
      },
      resolve,
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

async function call(
  path: string,
  options: Call = {},
): Promise<{ status: number; text: string; message: IncomingMessage }> {
  const message = await open(path, options)
  let text = ''
  for await (const chunk of message) text += chunk
  return { status: message.statusCode ?? 0, text, message }
}

const json = { 'content-type': 'application/json' }
const configMaps = '/api/v1/namespaces/default/configmaps'

it('says when to come again where no node serves streams, also to a request for an upgrade', async () => {
  const pods = '/api/v1/namespaces/default/pods'
  const spec = { nodeName: 'n', containers: [{ name: 'c', image: 'example/c' }] }
  const body = JSON.stringify({ metadata: { name: 'bound' }, spec })
  expect((await call(pods, { method: 'POST', headers: json, body })).status).toBe(201)
  const headers = { connection: 'Upgrade', upgrade: 'SPDY/3.1', 'x-stream-protocol-version': 'v4.channel.k8s.io' }
  const refused = await call(`${pods}/bound/exec?command=x&stdout=1`, { method: 'POST', headers })
  expect([refused.status, refused.message.headers['retry-after']]).toEqual([503, '1'])
  expect(JSON.parse(refused.text)).toMatchObject({ code: 503, details: { retryAfterSeconds: 1 } })
})

describe('authentication', () => {
  it.each<{ who: string; call: Call; path: string; status: number; says?: RegExp }>([
    { who: '2: nobody', call: { as: 'nobody' }, path: '/api', status: 401, says: /"reason":\s*"Unauthorized"/ },
    {
      who: '3: a wrong token',
      call: { as: 'nobody', headers: { authorization: 'Bearer no' } },
      path: '/api',
      status: 401,
      says: /"reason":\s*"Unauthorized"/,
    },
    { who: '3: the right token', call: {}, path: '/api', status: 200 },
    { who: '4: a client certificate', call: { as: 'certificate' }, path: '/api', status: 200 },
    { who: '5: nobody asking for health', call: { as: 'nobody' }, path: '/readyz', status: 200 },
    { who: '6: nobody asking for the version', call: { as: 'nobody' }, path: '/version/', status: 200 },
    {
      who: 'a web page',
      call: { headers: { origin: 'https://evil.example' } },
      path: '/api',
      status: 403,
      says: /origin|web page/i,
    },
  ])('$who gets $status', async ({ call: options, path, status, says = /./ }) => {
    const answer = await call(path, options)
    expect([answer.status, answer.text]).toEqual([status, expect.stringMatching(says)])
  })

  it('4: a review shows name and groups of the certificate', async () => {
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const { text } = await call(path, { method: 'POST', as: 'certificate', headers: json, body: '{}' })
    expect(JSON.parse(text).status.userInfo).toEqual({
      username: 'corral-admin',
      groups: ['system:masters', 'system:authenticated'],
    })
  })

  it('125: a service account token authenticates, may ask reviews and nothing else', async () => {
    const path = '/api/v1/namespaces/default/serviceaccounts/default/token'
    const issued = JSON.parse((await call(path, { method: 'POST', headers: json, body: '{"spec":{}}' })).text)
    const headers = { ...json, authorization: `Bearer ${issued.status.token}` }
    const review = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const answer = await call(review, { method: 'POST', as: 'nobody', headers, body: '{}' })
    expect(JSON.parse(answer.text).status.userInfo.username).toBe('system:serviceaccount:default:default')
    const secrets = await call('/api/v1/namespaces/default/secrets', { as: 'nobody', headers })
    expect([secrets.status, JSON.parse(secrets.text).message]).toEqual([403, expect.stringContaining('serviceaccount')])
    const tokenReview = { spec: { token: issued.status.token } }
    const reviewed = await call('/apis/authentication.k8s.io/v1/tokenreviews', {
      method: 'POST',
      headers: json,
      body: JSON.stringify(tokenReview),
    })
    expect(JSON.parse(reviewed.text).status).toMatchObject({ authenticated: true })
  })
})

describe('bodies', () => {
  it('text beyond ASCII arrives as it is, in the body and in a warning', async () => {
    const body = JSON.stringify({ metadata: { name: 'umlaut' }, data: { greeting: 'Grüß dich, 世界 🐎' }, größe: 1 })
    const headers = { 'content-type': 'application/json' }
    const { status, text, message } = await call('/api/v1/namespaces/default/configmaps', {
      method: 'POST',
      headers,
      body,
    })
    expect(status).toBe(201)
    expect(JSON.parse(text).data.greeting).toBe('Grüß dich, 世界 🐎')
    expect(Buffer.from(String(message.headers.warning), 'latin1').toString('utf8')).toBe(
      '299 - "unknown field \\"größe\\""',
    )
    expect(Number(message.headers['content-length'])).toBe(Buffer.byteLength(text))
  })

  it('49: more than 3 MiB are refused with 413', async () => {
    const body = Buffer.alloc(3 * 1024 * 1024 + 1, ' ')
    const { status, text } = await call(configMaps, { method: 'POST', headers: json, body })
    expect(status).toBe(413)
    expect(JSON.parse(text).reason).toBe('RequestEntityTooLarge')
  })

  it.each([
    { what: '25: CSV', type: 'text/csv', body: 'a,b', status: 415 },
    { what: 'CBOR', type: 'application/cbor', body: 'a', status: 415 },
    { what: 'broken JSON', type: 'application/json', body: '{', status: 400 },
    { what: 'a JSON list', type: 'application/json', body: '[]', status: 400 },
    { what: 'broken protobuf', type: 'application/vnd.kubernetes.protobuf', body: 'k8s', status: 400 },
    { what: '26: YAML', type: 'application/yaml', body: 'metadata: {name: from-yaml}\ndata: {a: b}', status: 201 },
  ])('$what is answered with $status', async ({ type, body, status }) => {
    const answer = await call(configMaps, { method: 'POST', headers: { 'content-type': type }, body })
    expect(answer.status).toBe(status)
    expect(answer.message.headers['content-type']).toBe('application/json')
  })
})

describe('watch', () => {
  it('75: headers come before any event, and events follow writes', async () => {
    const list = JSON.parse((await call(configMaps)).text)
    const message = await open(`${configMaps}?watch=1&resourceVersion=${list.metadata.resourceVersion}`)
    expect(message.statusCode).toBe(200)
    await call(configMaps, { method: 'POST', headers: json, body: JSON.stringify({ metadata: { name: 'w' } }) })
    await call(`${configMaps}/w`, { method: 'DELETE' })
    let text = ''
    for await (const chunk of message) {
      text += chunk
      if (text.split('\n').length > 2) break
    }
    const types = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).type)
    expect(types).toEqual(['ADDED', 'DELETED'])
  })

  it('78: timeoutSeconds ends the stream', async () => {
    const { status } = await call(`${configMaps}?watch=true&timeoutSeconds=1`)
    expect(status).toBe(200)
  })

  it('79: a version from before the server is too old, as an event', async () => {
    const { status, text } = await call(`${configMaps}?watch=true&resourceVersion=1`)
    expect(status).toBe(200)
    expect(JSON.parse(text)).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } })
  })
})

describe('files', () => {
  it('keys, token and kubeconfig are for their owner only', () => {
    const path = join(directory, 'kubeconfig')
    writeKubeconfig(path, endpoint)
    const files = [path, join(directory, 'tls', 'admin.token'), join(directory, 'tls', 'server.key')]
    expect(files.map((file) => statSync(file).mode & 0o777)).toEqual([0o600, 0o600, 0o600])
    expect(JSON.parse(readFileSync(path, 'utf8'))['current-context']).toBe('corral')
  })

  it('a second start uses the same certificates and token', async () => {
    const again = await serveHttps({ server, port: 0, dataDir: directory })
    expect(again.tls.ca.cert).toBe(endpoint.tls.ca.cert)
    expect(again.token).toBe(endpoint.token)
    await again.close()
  })
})
