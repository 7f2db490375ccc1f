import { type ClusterAccess, type KubeFetch, kubeClientFromConfig } from '@corral/kube'
import type { ApiRequest } from '@corral/ports'
import { type Sandbox, Sandboxes, type Stored } from '@corral/resources'
import { beforeEach, describe, expect, it } from 'vitest'
import { AgentSandboxClient } from './agent-sandbox-client.js'
import { TestCluster } from './test-cluster.test-suite.js'

const podTemplate = { spec: { containers: [{ name: 'main', image: 'debian' }] } }
const sandbox = (name: string): Sandbox => ({ metadata: { name }, spec: { podTemplate } })
/** No server listens there, and its certificate authority is none: whatever does not go through `fetch` fails. */
const access: ClusterAccess = {
  server: new URL('https://cluster.invalid:6443/behind/a/path'),
  namespace: 'team',
  tls: { ca: 'none', rejectUnauthorized: true },
  credentials: async () => ({ authorization: 'Bearer one', impersonation: { 'impersonate-group': ['a', 'b'] } }),
  origin: 'test',
}

let cluster: TestCluster
let seen: { url: string; headers: Headers }[]

beforeEach(() => {
  cluster = new TestCluster()
  seen = []
})

const fetchCluster: KubeFetch = async (target, init) => {
  const url = new URL(target)
  const headers = new Headers(init.headers)
  seen.push({ url: target, headers })
  const request: ApiRequest = {
    method: init.method ?? 'GET',
    path: url.pathname.replace('/behind/a/path', ''),
    query: url.searchParams,
    headers: Object.fromEntries(headers),
    signal: init.signal ?? new AbortController().signal,
    ...(typeof init.body === 'string' ? { body: JSON.parse(init.body) as object } : {}),
  }
  const { status, body } = await cluster.handle(request)
  if (body.type === 'object') return Response.json(body.value, { status })
  if (body.type !== 'watch') return new Response(null, { status })
  const lines = body.frames[Symbol.asyncIterator]()
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await lines.next()
      if (done) return controller.close()
      controller.enqueue(Buffer.from(value.line()))
    },
  })
  return new Response(stream, { status })
}

describe('a client with a fetch of the caller', () => {
  it('sends calls and watches through it, to the address of the cluster and with its credentials', async () => {
    await using client = new AgentSandboxClient({ kubeConfig: access, fetch: fetchCluster })
    await client.sandboxes.objects.create(sandbox('one'))
    await client.sandboxes.objects.patch('one', { metadata: { labels: { a: 'b' } } })
    expect((await client.sandboxes.objects.get('one')).metadata.labels).toEqual({ a: 'b' })
    const names: string[] = []
    for await (const { metadata } of client.sandboxes.list()) names.push(metadata.name)
    expect(names).toEqual(['one'])

    const waiting = client.sandboxes.waitForReady('one')
    const path = '/apis/agents.x-k8s.io/v1beta1/namespaces/team/sandboxes/one'
    await expect.poll(() => cluster.requests.some((line) => line.endsWith('sandboxes?watch'))).toBe(true)
    const known = cluster.objects.get(path) as Stored<Sandbox>
    const lastTransitionTime = '2026-01-01T00:00:00Z'
    const ready = { type: 'Ready', status: 'True' as const, reason: 'R', message: '', lastTransitionTime }
    cluster.put(path, { ...known, status: { conditions: [ready] } } as Stored<Sandbox>)
    expect((await waiting).metadata.name).toBe('one')

    const [first] = seen
    expect(first?.url).toMatch(/^https:\/\/cluster\.invalid:6443\/behind\/a\/path\/apis\//)
    expect(first?.headers.get('authorization')).toBe('Bearer one')
    expect(first?.headers.get('impersonate-group')).toBe('a, b')
  })

  it.each<{ when: string; fetch: KubeFetch; code: string; says: RegExp }>([
    {
      when: 'fails as fetch does',
      fetch: async () => {
        throw new TypeError('fetch failed', { cause: Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }) })
      },
      code: 'ConnectionLost',
      says: /refused/,
    },
    {
      when: 'fails without a cause',
      fetch: async () => {
        throw new TypeError('Failed to fetch')
      },
      code: 'ConnectionLost',
      says: /Failed to fetch/,
    },
    {
      when: 'breaks off in the middle of an answer',
      fetch: async () =>
        new Response(new ReadableStream({ start: (controller) => controller.error(new TypeError('terminated')) }), {
          headers: { 'content-type': 'application/json' },
        }),
      code: 'ConnectionLost',
      says: /terminated/,
    },
    {
      when: 'answers with a refusal',
      fetch: async () =>
        Response.json({ kind: 'Status', code: 403, reason: 'Forbidden', message: 'no' }, { status: 403 }),
      code: 'Forbidden',
      says: /no/,
    },
    { when: 'never answers', fetch: () => new Promise(() => {}), code: 'Timeout', says: /no answer within 50 ms/ },
  ])('one that $when is told as $code', async ({ fetch, code, says }) => {
    const kube = kubeClientFromConfig(access, { fetch })
    const call = kube.create(Sandboxes, sandbox('one'), { timeoutMs: 50 })
    await expect(call).rejects.toMatchObject({ code, message: expect.stringMatching(says) })
    await kube.close()
  })

  it('asks for other credentials once when the first are refused', async () => {
    let tokens = 0
    const credentials = async () => {
      tokens += 1
      return { authorization: `Bearer ${tokens}` }
    }
    const fetch: KubeFetch = async (url, init) =>
      new Headers(init.headers).get('authorization') === 'Bearer 1'
        ? Response.json({ kind: 'Status', code: 401, reason: 'Unauthorized' }, { status: 401 })
        : fetchCluster(url, init)
    const kube = kubeClientFromConfig({ ...access, credentials }, { fetch })
    await kube.create(Sandboxes, sandbox('one'))
    expect(tokens).toBe(2)
    await kube.close()
  })

  it('ends a call with its signal', async () => {
    const kube = kubeClientFromConfig(access, { fetch: () => new Promise(() => {}) })
    const stop = new AbortController()
    const call = kube.create(Sandboxes, sandbox('one'), { signal: stop.signal })
    stop.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
    await kube.close()
  })
})
