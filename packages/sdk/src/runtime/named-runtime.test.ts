import { createServer as createHttp, type Server as HttpServer } from 'node:http'
import { createServer as createHttp2 } from 'node:http2'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { daemonPort } from '@corral/protocol'
import { ProcessService } from '@corral/protocol/process-service'
import { afterEach, describe, expect, it } from 'vitest'
import { socketStream } from '../connection/socket-stream.js'
import { type StreamFetch, streamFetch } from '../stream-fetch.js'
import { requireRuntime } from './detect-runtime.js'
import { sandboxdRuntime } from './sandboxd-runtime.js'

const close: (() => void)[] = []
afterEach(() => {
  for (const call of close.splice(0)) call()
})

async function listen(server: Server | HttpServer): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  close.push(() => server.close())
  return (server.address() as AddressInfo).port
}

/** Connections to whatever the test has put behind every port of the sandbox. */
function linesTo(port: number): StreamFetch & { dial: () => ReturnType<typeof socketStream> } {
  const dial = () => {
    const socket = connect(port, '127.0.0.1')
    close.push(() => socket.destroy())
    return socketStream(socket)
  }
  const lines = streamFetch(dial)
  close.push(() => lines.close())
  return { ...lines, dial }
}

const page = () =>
  createHttp((_, response) => response.setHeader('content-type', 'text/html').end('<html>hello</html>'))
const json = (body: unknown) => createHttp((_, response) => response.end(JSON.stringify(body)))
const banner = () =>
  createServer((socket) => {
    socket.on('error', () => {})
    socket.end('SSH-2.0-OpenSSH_9.9\r\n')
  })

describe('a runtime that was named', () => {
  it.each([
    { what: 'a web page', kind: 'sandboxd', server: page, says: 'what answers on port 8080' },
    { what: 'a web page', kind: 'legacy', server: page, says: `what answers on port ${daemonPort}` },
    { what: 'a web page', kind: 'corral', server: page, says: `what answers on port ${daemonPort}` },
    { what: 'another API', kind: 'sandboxd', server: () => json({ status: 'degraded' }), says: 'port 8080' },
    { what: 'null', kind: 'sandboxd', server: () => json(null), says: 'port 8080' },
    { what: 'no HTTP', kind: 'sandboxd', server: banner, says: 'port 8080' },
  ] as const)('is Unsupported where $what answers for $kind', async ({ kind, server, says }) => {
    const { fetch, close: drop } = linesTo(await listen(server()))
    const transport = { kind: 'direct' as const, fetchTo: () => fetch, close: drop }
    await expect(requireRuntime(kind, transport, { authorize: (given) => given })).rejects.toMatchObject({
      code: 'Unsupported',
      message: expect.stringContaining(says),
      hint: expect.stringContaining('Leave `runtime` out'),
    })
  })

  it('is Unsupported where nothing listens', async () => {
    const gone = createServer()
    const port = await listen(gone)
    await new Promise((resolve) => gone.close(resolve))
    const { fetch, close: drop } = linesTo(port)
    const transport = { kind: 'direct' as const, fetchTo: () => fetch, close: drop }
    const asked = requireRuntime('sandboxd', transport, { authorize: (given) => given, startsWithinMs: 0 })
    await expect(asked).rejects.toMatchObject({
      code: 'Unsupported',
      message: expect.stringContaining('nothing listens on port 8080'),
    })
  })

  it('is waited for where the pod was ready before it listened', async () => {
    const late = json({ status: 'ok' })
    const port = await listen(late)
    await new Promise((resolve) => late.close(resolve))
    const { fetch, close: drop } = linesTo(port)
    let asked = 0
    const authorize = () => async (url: Parameters<typeof fetch>[0], init?: Parameters<typeof fetch>[1]) => {
      asked += 1
      if (asked === 3) await new Promise<void>((resolve) => late.listen(port, '127.0.0.1', resolve))
      return fetch(url, init)
    }
    const transport = { kind: 'direct' as const, fetchTo: () => fetch, close: drop }
    const found = await requireRuntime('sandboxd', transport, { authorize, startsWithinMs: 60_000 })
    expect(found).toEqual({ kind: 'sandboxd', boot: '' })
    expect(asked).toBe(3)
  })

  it('is used where it answers', async () => {
    const { fetch, close: drop } = linesTo(await listen(json({ status: 'ok' })))
    const transport = { kind: 'direct' as const, fetchTo: () => fetch, close: drop }
    const found = await requireRuntime('sandboxd', transport, { authorize: (given) => given })
    expect(found).toEqual({ kind: 'sandboxd', boot: '' })
  })
})

describe('what listens on the port of sandboxd’s gRPC', () => {
  it.each([
    { what: 'an HTTP/1.1 server', server: page, code: 'Unsupported' },
    { what: 'a server that speaks first', server: banner, code: 'Unsupported' },
    {
      what: 'HTTP/2 without gRPC',
      server: () => createHttp2((_, response) => response.writeHead(404).end()),
      code: 'Unsupported',
    },
    {
      what: 'a server that hangs up',
      server: () => createServer((socket) => void socket.end()),
      code: 'ConnectionLost',
    },
  ])('fails the command with a typed error and nothing else: $what', async ({ server, code }) => {
    const { dial } = linesTo(await listen(server()))
    const runtime = sandboxdRuntime(fetch, dial, async () => {})
    const run = async () => {
      for await (const _ of runtime.start({ argv: ['true'] }).events) throw new Error('an event came')
    }
    // An error that the session emits after `close` would end the test run.
    await expect(run().finally(() => runtime.close())).rejects.toMatchObject({ code })
  })
})

describe('a sandbox that answers in the place of its sandboxd', () => {
  it.each([
    { how: 'with a message that unpacks to more than is taken', bytes: 64 * 1024 * 1024, ends: 'OutputLimitExceeded' },
    { how: 'with one of a megabyte', bytes: 1024 * 1024, ends: 'exit' },
  ])('$how', async ({ bytes, ends }) => {
    const answer = connectNodeAdapter({
      routes: (router) =>
        router.service(ProcessService, {
          async *start() {
            yield { event: { case: 'init', value: { processId: 1 } } }
            yield { event: { case: 'stdout', value: Buffer.alloc(bytes) } }
            yield { event: { case: 'exit', value: { exitCode: 0 } } }
          },
        }),
    })
    const { dial } = linesTo(await listen(createHttp2(answer)))
    const runtime = sandboxdRuntime(fetch, dial, async () => {})
    const run = async () => {
      let last = ''
      for await (const event of runtime.start({ argv: ['true'] }).events) last = event.type
      return last
    }
    const said = await run().catch((error: { code: string }) => error.code)
    runtime.close()
    expect(said).toBe(ends)
  })
})
