import { request } from 'node:https'
import { type HttpsEndpoint, serveHttps } from '@corral/apiserver'
import { bubblewrapIsolation, type KubeletServer, startKubeletServer, subjectAccess } from '@corral/node'
import { Secrets } from '@corral/resources'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isReady, type NodeUnderTest, nodeName, nodeUnderTest } from './node-under-test.js'

describe('the kubelet’s routes', () => {
  let node: NodeUnderTest
  let endpoint: HttpsEndpoint
  let kubelet: KubeletServer
  let isTrusted = true

  beforeAll(async () => {
    node = await nodeUnderTest((dataDir) => bubblewrapIsolation({ dataDir }))
    endpoint = await serveHttps({ server: node.server, port: 0, dataDir: node.dataDir })
    const { server, ca } = endpoint.tls
    kubelet = await startKubeletServer({
      node: node.agent,
      port: 0,
      tls: { ...server, clientCa: ca.cert },
      authorize: async (caller, verb) =>
        (isTrusted || verb === 'get') && subjectAccess(node.client, nodeName)(caller, verb),
      host: '127.0.0.1',
    })
    const script = 'echo ready; trap "exit 0" TERM; while :; do sleep 0.1; done'
    await node.create('served', { containers: [{ name: 'main', image: 'busybox', command: ['sh', '-c', script] }] })
    await node.until('served', isReady)
  })
  afterAll(async () => {
    await kubelet?.close()
    await endpoint?.close()
    await node?.[Symbol.asyncDispose]()
  })

  const credentials = () => ({ ca: endpoint.tls.ca.cert, ...endpoint.tls.admin })

  const get = (path: string, tls: object = credentials()): Promise<{ status: number; body: string }> =>
    new Promise((resolve, reject) => {
      request({ host: '127.0.0.1', port: kubelet.port, path, ...tls }, (response) => {
        let body = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          body += chunk
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
      })
        .on('error', reject)
        .end()
    })

  /** Everything the server sends over a WebSocket, by Kubernetes' channel number. */
  const channelsOf = (path: string): Promise<Map<number, string>> =>
    new Promise((resolve, reject) => {
      const headers = {
        Connection: 'Upgrade',
        Upgrade: 'websocket',
        'Sec-WebSocket-Version': '13',
        'Sec-WebSocket-Key': Buffer.alloc(16).toString('base64'),
        'Sec-WebSocket-Protocol': 'v5.channel.k8s.io',
      }
      request({ host: '127.0.0.1', port: kubelet.port, path, headers, ...credentials() })
        .on('upgrade', (_response, socket, head) => {
          const chunks: Buffer[] = [head]
          socket.on('data', (chunk: Buffer) => {
            chunks.push(chunk)
            if (frames(Buffer.concat(chunks)).some((frame) => frame.opcode === closeFrame)) socket.destroy()
          })
          socket.on('close', () => resolve(byChannel(frames(Buffer.concat(chunks)))))
        })
        .on('response', ({ statusCode }) => reject(new Error(`refused with ${statusCode}`)))
        .on('error', reject)
        .end()
    })

  it.each([
    { path: '/healthz', status: 200, body: 'ok' },
    { path: '/containerLogs/default/served/main', status: 200, body: 'ready\n' },
    { path: '/containerLogs/default/served/main?tailLines=0', status: 200, body: '' },
    { path: '/containerLogs/default/served/main?tailLines=x', status: 400, body: 'invalid log options\n' },
    { path: '/containerLogs/default/nobody/main', status: 404, body: 'pod nobody_default is not on this node\n' },
    { path: '/exec/default/served/main', status: 400, body: 'Upgrade request required\n' },
    { path: '/elsewhere', status: 404, body: '404 page not found\n' },
    { path: '/exec/default/%zz/main', status: 404, body: '404 page not found\n' },
  ])('answer $path with $status', async ({ path, status, body }) => {
    expect(await get(path)).toEqual({ status, body })
  })

  it('send a long log without a MaxListenersExceededWarning', async () => {
    const warnings: string[] = []
    const onWarning = (warning: Error): void => void warnings.push(warning.name)
    process.on('warning', onWarning)
    try {
      const script = 'head -c 6000000 /dev/zero | tr "\\\\0" "x" | fold -w 1000; exec sleep 600'
      await node.create('chatty', { containers: [{ name: 'main', image: 'busybox', command: ['sh', '-c', script] }] })
      await node.until('chatty', isReady)
      const read = async (): Promise<number> => (await get('/containerLogs/default/chatty/main')).body.length
      await expect.poll(read, { timeout: 120_000 }).toBeGreaterThan(6_000_000)
      expect(warnings).toEqual([])
    } finally {
      process.off('warning', onWarning)
    }
  })

  it('refuse a client without a certificate', async () => {
    await expect(get('/healthz', { ca: endpoint.tls.ca.cert })).rejects.toThrow(
      /certificate required|ECONNRESET|socket hang up/i,
    )
  })

  it('refuse a caller who may not use the node, a stream as well as a log', async () => {
    const stranger = { name: 'mallory', groups: ['guests'] }
    const admin = { name: 'admin', groups: ['system:masters'] }
    const mayUse = subjectAccess(node.client, nodeName)
    expect([await mayUse(stranger, 'create'), await mayUse(stranger, 'get'), await mayUse(admin, 'create')]).toEqual([
      ...[false, false, true],
    ])
    isTrusted = false
    await expect(channelsOf('/exec/default/served/main?command=id&output=1')).rejects.toThrow(/403/)
    isTrusted = true
  })

  it('run a command and report its exit code', async () => {
    const query = 'command=sh&command=-c&command=echo+out%3B+exit+3&output=1&error=1'
    const channels = await channelsOf(`/exec/default/served/main?${query}`)
    expect(channels.get(1)).toBe('out\n')
    expect(JSON.parse(channels.get(3) ?? '{}')).toMatchObject({
      reason: 'NonZeroExitCode',
      details: { causes: [{ reason: 'ExitCode', message: '3' }] },
    })
  })

  it('are not needed for a probe over TLS inside the pod', async () => {
    const base64 = (value: string): string => Buffer.from(value).toString('base64')
    const { cert, key } = endpoint.tls.server
    const data = { cert: base64(cert), key: base64(key) }
    await node.client.create(Secrets, { metadata: { namespace: 'default', name: 'tls' }, data })
    const read = (name: string) => `require('fs').readFileSync('/tls/${name}')`
    const server = `require('https').createServer({ cert: ${read('cert')}, key: ${read('key')} }, (_, response) => response.writeHead(204).end())`
    await node.create('secure', {
      volumes: [{ name: 'tls', secret: { secretName: 'tls' } }],
      containers: [
        {
          name: 'main',
          image: 'node',
          command: ['node', '-e', `${server}.listen(8443)`],
          volumeMounts: [{ name: 'tls', mountPath: '/tls' }],
          readinessProbe: { httpGet: { port: 8443, scheme: 'HTTPS' } },
        },
      ],
    })
    await node.until('secure', isReady)
  })
})

const closeFrame = 8

interface Frame {
  opcode: number
  payload: Buffer
}

/** The whole frames of a server's stream: unmasked, and none of them long. */
function frames(bytes: Buffer): Frame[] {
  const found: Frame[] = []
  for (let at = 0; at + 2 <= bytes.length; ) {
    const short = bytes.readUInt8(at + 1)
    const [length, begin] = short === 126 ? [bytes.readUInt16BE(at + 2), at + 4] : [short, at + 2]
    if (begin + length > bytes.length) break
    found.push({ opcode: bytes.readUInt8(at) & 15, payload: bytes.subarray(begin, begin + length) })
    at = begin + length
  }
  return found
}

function byChannel(all: readonly Frame[]): Map<number, string> {
  const channels = new Map<number, string>()
  for (const { opcode, payload } of all) {
    if (opcode !== 2 || payload.length === 0) continue
    const channel = payload.readUInt8(0)
    channels.set(channel, (channels.get(channel) ?? '') + payload.subarray(1).toString('utf8'))
  }
  return channels
}
