import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { WatchFrame, WatchFrames } from '@corral/ports'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { writeResponse } from './write-response.js'

let server: Server

beforeAll(async () => {
  server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

/** Frames that come when the test says so. */
function pushed(): { frames: WatchFrames; push(line: string): void; end(): void } {
  const ready: (WatchFrame | undefined)[] = []
  let wake = (): void => {}
  async function* read(): AsyncGenerator<WatchFrame> {
    while (true) {
      while (ready.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      const frame = ready.shift()
      if (!frame) return
      yield frame
    }
  }
  const push = (frame: WatchFrame | undefined): void => {
    ready.push(frame)
    wake()
  }
  return {
    frames: read(),
    push: (line) => push({ line: () => line } as WatchFrame),
    end: () => push(undefined),
  }
}

async function open(): Promise<{ response: ServerResponse; answer: Promise<[IncomingMessage]> }> {
  const asked = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>
  const outgoing = get({ host: '127.0.0.1', port: (server.address() as AddressInfo).port })
  const answer = once(outgoing, 'response') as Promise<[IncomingMessage]>
  return { response: (await asked)[1], answer }
}

it('hands a watch event to the socket in the turn in which it happened, before the answers that wait for the same turn', async () => {
  const { response, answer } = await open()
  const { frames, push, end } = pushed()
  const done = writeResponse(
    response,
    { status: 200, headers: {}, body: { type: 'watch', frames } },
    { isHead: false, acceptsGzip: false },
  )
  const [message] = await answer
  push('{"type":"ADDED"}\n')
  for (let hop = 0; hop < 20; hop++) await Promise.resolve()
  expect(response.socket).toMatchObject({ writableCorked: 0, writableLength: 0 })
  end()
  await done
  let text = ''
  for await (const chunk of message) text += String(chunk)
  expect(text).toBe('{"type":"ADDED"}\n')
})
