import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DaemonClient, encodeOutputFrame, outputContentType } from '@corral/protocol'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'

/** The code of a sandbox can end its daemon and answer in its place: whatever it says there is input. */
let daemon: Server
let elsewhere: Server
let answer: (request: IncomingMessage, response: ServerResponse) => void
let reached = 0
let client: DaemonClient
const urlOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

beforeAll(async () => {
  daemon = createServer((request, response) => answer(request, response))
  elsewhere = createServer((_, response) => {
    reached += 1
    response.end('ok')
  })
  for (const server of [daemon, elsewhere]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  client = new DaemonClient({ fetch, baseUrl: urlOf(daemon) })
})
afterEach(() => daemon.closeAllConnections())
afterAll(() => {
  daemon.close()
  elsewhere.close()
})

const record = { id: 'p', status: 'exited', argv: ['true'], started_at: '2026-01-01T00:00:00.000Z', output_bytes: 0 }
const json = (value: unknown) => (_: IncomingMessage, response: ServerResponse) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))

/** Writes without end, as fast as it is read. */
function endless(response: ServerResponse, chunk: string): void {
  const more = (): void => {
    while (!response.destroyed && response.write(chunk));
    response.once('drain', more)
  }
  response.on('error', () => undefined)
  more()
}

describe('a daemon that lies', () => {
  it.each([
    { about: 'an exit code beyond 255', value: { ...record, exit: { exit_code: 1e9, exited_at: record.started_at } } },
    {
      about: 'an exit code that is text',
      value: { ...record, exit: { exit_code: '0', exited_at: record.started_at } },
    },
    { about: 'a record of another shape', value: [] },
    { about: 'nothing', value: null },
  ])('about a process, with $about, is not believed', async ({ value }) => {
    answer = json(value)
    await expect(client.getProcess('p')).rejects.toMatchObject({ code: 'ProtocolViolation' })
  })

  it('with an answer without end is cut off', async () => {
    answer = (_, response) => endless(response.writeHead(200), ' '.repeat(64 * 1024))
    await expect(client.getProcess('p')).rejects.toMatchObject({
      code: 'ProtocolViolation',
      message: expect.stringContaining('more than'),
    })
  })

  it('with an error message without end is cut off', async () => {
    answer = (_, response) => endless(response.writeHead(500), `{"error":{"code":"X","message":"${'m'.repeat(65_536)}`)
    await expect(client.getProcess('p')).rejects.toMatchObject({
      code: 'InternalError',
      message: expect.stringMatching(/answered 500/),
    })
  })

  it('with headers without end is cut off', async () => {
    answer = (_, response) => {
      response.socket?.on('error', () => undefined)
      response.socket?.write(`HTTP/1.1 200 OK\r\n${`X-${'a'.repeat(1_000)}: b\r\n`.repeat(2_000)}\r\n`)
    }
    await expect(client.getProcess('p')).rejects.toMatchObject({ code: 'ConnectionLost' })
  })

  it.each([
    { about: 'going back', offset: 0 },
    { about: 'jumping ahead', offset: 1_000_000 },
  ])('about an offset, $about, is not believed', async ({ offset }) => {
    const said = encodeOutputFrame({ type: 'data', stream: 'stdout', offset, data: Buffer.from('again') })
    answer = (_, response) => response.writeHead(200, { 'content-type': outputContentType }).end(said)
    const read = async (): Promise<void> => {
      for await (const _ of client.readOutput('p', { offset: 500, follow: false }));
    }
    await expect(read()).rejects.toMatchObject({
      code: 'ProtocolViolation',
      message: `output at ${offset} where 500 was expected`,
    })
  })

  it('with a frame that claims gigabytes is not waited for', async () => {
    const frame = Buffer.from(encodeOutputFrame({ type: 'data', stream: 'stdout', offset: 0, data: Buffer.from('x') }))
    const huge = Buffer.from(frame)
    huge.fill(0xff, 1, huge.length - 1)
    answer = (_, response) => response.writeHead(200, { 'content-type': outputContentType }).end(huge)
    const read = async (): Promise<void> => {
      for await (const _ of client.readOutput('p', { follow: false }));
    }
    await expect(read()).rejects.toMatchObject({ code: 'ProtocolViolation' })
  })

  it.each([301, 302, 307, 308])('with a redirect (%i) leads nowhere', async (status) => {
    reached = 0
    answer = (_, response) => response.writeHead(status, { location: urlOf(elsewhere) }).end()
    expect(await client.health()).toBe(false)
    await expect(client.getProcess('p')).rejects.toMatchObject({
      code: 'BadRequest',
      message: expect.stringContaining(`answered ${status}`),
    })
    expect(reached).toBe(0)
  })

  it('but one that tells the truth is believed', async () => {
    answer = (_, response) => response.end('ok')
    expect(await client.health()).toBe(true)
    const frame = encodeOutputFrame({ type: 'data', stream: 'stdout', offset: 0, data: Buffer.from('hello') })
    answer = (_, response) => response.writeHead(200, { 'content-type': outputContentType }).end(frame)
    const texts: string[] = []
    for await (const event of client.readOutput('p', { follow: false }))
      if (event.type === 'data') texts.push(Buffer.from(event.data).toString())
    expect(texts).toEqual(['hello'])
  })
})
