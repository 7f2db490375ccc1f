import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inProcessKubeClient } from '@corral/kube'
import type { Fetch } from '@corral/protocol'
import type { Sandbox, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { AgentSandboxClient } from './agent-sandbox-client.js'
import { type ConnectionOptions, gatewayHost, openTransport } from './connection/connection-options.js'
import { podAddress } from './connection/pod-address.js'
import { retryingFetch } from './connection/retrying-fetch.js'
import { addressTransport } from './connection/sandbox-transport.js'
import { legacyRuntime } from './runtime/legacy-runtime.js'
import { executableOf } from './telemetry.js'
import { TestCluster } from './test-cluster.test-suite.js'

/** The numbers are those of the reference's list of what clients of Agent Sandbox do. */

describe('addresses', () => {
  it.each([
    { addresses: ['2001:db8::1', '10.244.0.42'], address: '10.244.0.42' },
    { addresses: ['::ffff:10.0.0.1'], address: '10.0.0.1' },
    { addresses: ['  192.168.1.1 '], address: '192.168.1.1' },
    { addresses: ['2001:db8:0:0:0:0:2:1'], address: '2001:db8::2:1' },
    { addresses: ['bad'], address: undefined },
  ])('37: of $addresses it is $address', ({ addresses, address }) => {
    expect(podAddress(addresses)).toBe(address)
  })

  it.each([
    { name: '42: an IPv4 address', addresses: ['34.56.78.90'], host: '34.56.78.90' },
    { name: '42: an IPv6 address in brackets', addresses: ['2001:db8::1'], host: '[2001:db8::1]' },
    { name: '42: a name', addresses: ['gateway.example.org'], host: 'gateway.example.org' },
    { name: '43: nothing of a path', addresses: ['evil.com/path'], host: undefined },
    { name: '43: nothing of a user', addresses: ['user@host'], host: undefined },
    { name: '43: no number', addresses: ['2130706433', '0x7f000001', '0x7f.0.0.1', '0x'], host: undefined },
    { name: '43: no label of 64 characters', addresses: ['a'.repeat(64)], host: undefined },
    { name: '43: the first that fits', addresses: [7, null, 'evil.com/path', '10.0.0.1'], host: '10.0.0.1' },
  ])('$name of a gateway', ({ addresses, host }) => {
    expect(gatewayHost({ status: { addresses: addresses.map((value) => ({ value })) } })).toBe(host)
  })
})

const sandbox = {
  metadata: { name: 'box', namespace: 'team', uid: 'u', resourceVersion: '1' },
  spec: { podTemplate: { spec: { containers: [] } } },
  status: { podIPs: ['10.1.2.3'] },
} as unknown as Stored<Sandbox>

interface Sent {
  url: string
  init: RequestInit
}

/** A server that answers in turn, and what it was sent. */
function answering(...answers: (() => Response)[]): { fetch: Fetch; sent: Sent[] } {
  const sent: Sent[] = []
  const fetch: Fetch = async (url, init = {}) => {
    sent.push({ url: String(url), init })
    return (answers[sent.length - 1] ?? answers.at(-1))?.() ?? new Response('{}')
  }
  return { fetch, sent }
}

const headerOf = ({ init }: Sent, name: string): string | null => new Headers(init.headers).get(name)

async function over(options: ConnectionOptions, port = 8888): Promise<Response> {
  const kube = new TestCluster().client()
  const transport = await openTransport(options, kube, sandbox, 'box', { connectMs: 0 })
  return transport.fetchTo(port)('http://sandbox/healthz')
}

describe('headers for a router', () => {
  it('40: name namespace, sandbox, port and address', async () => {
    const { fetch, sent } = answering()
    await over({ type: 'direct', url: 'https://router.example.org/base', fetch }, 9000)
    const headers = ['x-sandbox-id', 'x-sandbox-namespace', 'x-sandbox-port', 'x-sandbox-pod-ip']
    expect(headers.map((name) => headerOf(sent[0]!, name))).toEqual(['box', 'team', '9000', '10.1.2.3'])
    expect(sent[0]?.url).toBe('https://router.example.org/base/healthz')
  })

  it.each([
    { what: 'a scoped token', options: { token: 'v1.payload.sig' }, address: null },
    { what: 'the option never', options: { podIP: 'never' as const }, address: null },
    { what: 'a bearer token', options: { token: 'secret' }, address: '10.1.2.3' },
  ])('40: the address is $address with $what', async ({ options, address }) => {
    const { fetch, sent } = answering()
    await over({ type: 'direct', url: 'http://router', fetch, ...options })
    expect(headerOf(sent[0]!, 'x-sandbox-pod-ip')).toBe(address)
    expect(headerOf(sent[0]!, 'authorization')).toBe('token' in options ? `Bearer ${options.token}` : null)
  })

  it('45: a redirect is an answer and its target is never asked', async () => {
    const { fetch, sent } = answering(() => new Response(null, { status: 302, headers: { location: 'http://evil/' } }))
    expect((await over({ type: 'direct', url: 'http://router', fetch })).status).toBe(302)
    expect(sent.map(({ init }) => init.redirect)).toEqual(['manual'])
  })

  it('39: are not sent inside a cluster', async () => {
    const seen: IncomingHttpHeaders[] = []
    const pod = createServer(({ headers }, response) => {
      seen.push(headers)
      response.end()
    })
    await new Promise<void>((resolve) => pod.listen(0, '127.0.0.1', resolve))
    try {
      const transport = addressTransport('in-cluster-pod-ip', '127.0.0.1')
      await transport.fetchTo((pod.address() as AddressInfo).port)('http://sandbox/healthz')
      transport.close()
      expect(Object.keys(seen[0] ?? {}).filter((name) => name.startsWith('x-sandbox'))).toEqual([])
    } finally {
      pod.closeAllConnections()
      await new Promise((resolve) => pod.close(resolve))
    }
  })

  it('44: a gateway that is deleted while it is looked for is told as such', async () => {
    const cluster = new TestCluster()
    const path = '/apis/gateway.networking.k8s.io/v1/namespaces/team/gateways/front'
    cluster.put(path, { metadata: { name: 'front', namespace: 'team' } })
    const whole = cluster.handle.bind(cluster)
    cluster.handle = async (request) => {
      const answer = whole(request)
      if (request.query.get('watch')) void whole({ ...request, method: 'DELETE', path, query: new URLSearchParams() })
      return answer
    }
    const options = { type: 'gateway', name: 'front', namespace: 'team' } as const
    await expect(
      openTransport(options, inProcessKubeClient(cluster), sandbox, 'box', { connectMs: 0 }),
    ).rejects.toMatchObject({ code: 'SandboxDeleted', message: expect.stringContaining('Gateway "front"') })
  })

  it('38: inside a cluster a sandbox without an address is not ready, instead of being looked for by name', async () => {
    const kube = new TestCluster().client()
    const nowhere = { ...sandbox, status: {} }
    await expect(
      openTransport({ type: 'in-cluster-pod-ip' }, kube, nowhere, 'box', { connectMs: 0 }),
    ).rejects.toMatchObject({
      code: 'SandboxNotReady',
    })
  })

  it.each([
    { what: 'an address without a scheme', connection: { type: 'direct', url: 'router:80' } },
    { what: 'an address without a host', connection: { type: 'direct', url: 'http://' } },
    { what: 'a scheme that is not HTTP', connection: { type: 'router', url: 'ftp://router' } },
    { what: 'a gateway without a name', connection: { type: 'gateway', name: '' } },
  ])('48 49: $what is refused by the constructor', ({ connection }) => {
    expect(() => new AgentSandboxClient({ connection: connection as ConnectionOptions })).toThrow(
      expect.objectContaining({ code: 'Invalid' }),
    )
  })
})

describe('asking again', () => {
  const wait = async (): Promise<void> => undefined
  const status = (code: number) => () => new Response(null, { status: code })

  it.each([500, 502, 503, 504])('50 52: a read that got %i is asked again, under the same request id', async (code) => {
    const { fetch, sent } = answering(status(code), status(200))
    expect((await retryingFetch(fetch, { wait })('http://x/')).status).toBe(200)
    expect(sent).toHaveLength(2)
    expect(new Set(sent.map((each) => headerOf(each, 'x-request-id'))).size).toBe(1)
    expect(headerOf(sent[0]!, 'x-request-id')).toMatch(/^[0-9a-f]{16}$/)
  })

  it.each([400, 403, 404])('50: a read that got %i is not', async (code) => {
    const { fetch, sent } = answering(status(code))
    expect((await retryingFetch(fetch, { wait })('http://x/')).status).toBe(code)
    expect(sent).toHaveLength(1)
  })

  it.each(['POST', 'PUT', 'DELETE'])('51 53: %s is sent once', async (method) => {
    const { fetch, sent } = answering(status(503))
    expect((await retryingFetch(fetch, { wait })('http://x/', { method })).status).toBe(503)
    expect(sent).toHaveLength(1)
  })

  it('52 54: after six attempts the last answer is what there is, with pauses that grow', async () => {
    const pauses: number[] = []
    const { fetch, sent } = answering(status(503))
    const note = async (ms: number): Promise<void> => void pauses.push(ms)
    expect((await retryingFetch(fetch, { wait: note, random: () => 1 })('http://x/')).status).toBe(503)
    expect(sent).toHaveLength(6)
    expect(pauses).toEqual([0, 625, 1_250, 2_500, 5_000])
  })
})

describe('the legacy protocol', () => {
  const runtime = (fetch: Fetch) => legacyRuntime(fetch, async () => undefined)
  const json = (value: unknown) => () => Response.json(value)
  const run = async (fetch: Fetch, argv: string[]) => {
    const events = []
    for await (const event of runtime(fetch).start({ argv }).events) events.push(event)
    return events
  }

  it('58: a command is one line, and an empty answer is a command nobody saw end', async () => {
    const { fetch, sent } = answering(json({}))
    expect(await run(fetch, ['echo', 'hello'])).toEqual([{ type: 'exit', exitCode: -1, signal: undefined }])
    expect(sent[0]?.init.body).toBe('{"command":"echo hello"}')
    await expect(run(answering(() => new Response('no JSON')).fetch, ['true'])).rejects.toMatchObject({
      code: 'ProtocolViolation',
    })
  })

  it('56: an answer over 16 MiB is refused', async () => {
    const large = () => Response.json({ stdout: 'x'.repeat(16 * 1024 * 1024 + 1) })
    await expect(run(answering(large).fetch, ['true'])).rejects.toMatchObject({ code: 'OutputLimitExceeded' })
  })

  it('59: a file goes in as the part `file` under its path', async () => {
    const { fetch, sent } = answering(json({ message: 'ok' }))
    await runtime(fetch).files.write('/dir/foo.txt', 'text', {})
    const body = new TextDecoder().decode(sent[0]?.init.body as Uint8Array)
    expect(body).toMatch(/name="file"; filename="dir\/foo\.txt"/)
  })

  it.each(['../etc/passwd', 'dir/../../etc/passwd', '', '.', 'foo\0../x', 'a\nb'])(
    '60: the path %j is refused here',
    async (path) => {
      const { fetch, sent } = answering()
      await expect(runtime(fetch).files.write(path, 'x', {})).rejects.toMatchObject({ code: 'Invalid' })
      expect(sent).toEqual([])
    },
  )

  it.each([
    { path: 'path with spaces/file.txt', wire: '/download/path%20with%20spaces%2Ffile.txt' },
    { path: 'file@special!.txt', wire: '/download/file%40special%21.txt' },
  ])('61: $path is asked for as $wire', async ({ path, wire }) => {
    const { fetch, sent } = answering(() => new Response('x'))
    for await (const _ of runtime(fetch).files.read(path, {})) break
    expect(sent[0]?.url).toBe(`http://sandbox${wire}`)
  })

  it('62 63: the base directory is listed, and entries nobody knows are left out', async () => {
    const file = { name: 'a', size: 1, type: 'file', mod_time: 1 }
    const { fetch, sent } = answering(json([file, { name: 'x', size: 0, type: 'socket', mod_time: 1 }]))
    const names = []
    for await (const { name } of runtime(fetch).files.list('.', {})) names.push(name)
    expect(names).toEqual(['a'])
    expect(sent[0]?.url).toMatch(/^http:\/\/sandbox\/list\/$/)
  })

  it('46: a failure has the code of its status, and one without a status is a lost connection', async () => {
    const read = async (fetch: Fetch) => {
      for await (const _ of runtime(fetch).files.read('a', {})) break
    }
    await expect(read(answering(() => new Response('no', { status: 404 })).fetch)).rejects.toMatchObject({
      code: 'NotFound',
      message: expect.stringContaining('404'),
    })
    const refused: Fetch = async () => {
      throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
    }
    await expect(read(refused)).rejects.toMatchObject({ code: 'ConnectionLost' })
  })

  it('67: deleting is Unsupported and asks nobody', async () => {
    const { fetch, sent } = answering()
    await expect(runtime(fetch).files.remove('a', {})).rejects.toMatchObject({ code: 'Unsupported' })
    expect(sent).toEqual([])
  })
})

describe('traces', () => {
  it.each([
    { argv: ['API_KEY=s', 'TOKEN=x', './run.sh', '--arg'], shown: 'run.sh' },
    { argv: [], shown: '' },
  ])('69: of $argv a span shows "$shown"', ({ argv, shown }) => {
    expect(executableOf(argv)).toBe(shown)
  })
})
