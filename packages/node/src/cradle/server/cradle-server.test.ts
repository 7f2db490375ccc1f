import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Frame, FrameReader } from '../protocol/frames.js'
import type { Hello } from '../protocol/messages.js'
import { CradleServer } from './cradle-server.js'
import type { PodHost } from './pod-host.js'

const cell = { podUid: 'uid', container: 'main', attempt: 1 }
const exit = { exitCode: 0, oomKilled: false, startedAt: '', finishedAt: '' }

/** A server whose only cell takes attachments, and how to open a connection to it. */
async function served() {
  const scratch = mkdtempSync(join(tmpdir(), 'corral-test-'))
  const run = { watchers: new Set(), send: () => true, onceDrained() {} }
  const server = new CradleServer({
    hello: {} as Hello,
    pods: { find: () => run, list: async () => [] } as unknown as PodHost,
    onMainsChanged() {},
    onKeep() {},
    onEndWithMain() {},
    onShutdown() {},
  })
  const path = join(scratch, 's')
  await server.listen(path)
  return {
    server,
    /** Greeted already. */
    async open(): Promise<{ socket: Socket; read(until: (all: Buffer) => boolean): Promise<Buffer> }> {
      const socket = connect(path)
      let all = Buffer.alloc(0)
      socket.on('data', (chunk: Buffer) => {
        all = Buffer.concat([all, chunk])
      })
      const read = async (until: (bytes: Buffer) => boolean): Promise<Buffer> => {
        while (!until(all)) await once(socket, 'data')
        const taken = all
        all = Buffer.alloc(0)
        return taken
      }
      await read((bytes) => bytes.includes('\n'))
      return { socket, read }
    },
    async [Symbol.asyncDispose]() {
      server.close()
      rmSync(scratch, { recursive: true })
    },
  }
}

it('kubectl attach does not end because another container ends while it connects', async () => {
  await using bench = await served()
  const { socket, read } = await bench.open()
  bench.server.announceExit(cell, exit)
  socket.write(`${JSON.stringify({ op: 'attach', cell, stdin: true })}\n`)
  const [first] = new FrameReader().take(await read((bytes) => bytes.length >= 5))
  expect(first?.type).toBe(Frame.started)
  socket.destroy()
})

it('a main hears of what happened between its connection and its first request', async () => {
  await using bench = await served()
  const { socket, read } = await bench.open()
  bench.server.announceExit(cell, exit)
  socket.write(`${JSON.stringify({ op: 'list', id: 1 })}\n`)
  const lines = (await read((bytes) => bytes.includes('"id":1'))).toString()
  expect(lines).toContain('"event":"exit"')
  bench.server.announceExit({ ...cell, attempt: 2 }, exit)
  expect((await read((bytes) => bytes.includes('\n'))).toString()).toContain('"attempt":2')
  socket.destroy()
})
