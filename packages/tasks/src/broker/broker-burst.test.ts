import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { findProvider } from '@corral/agents'
import { silentLogger } from '@corral/ports'
import { expect, it } from 'vitest'
import { startBroker } from './broker.js'
import { createTaskTokens } from './task-token.js'

const anthropic = findProvider('anthropic')!
const tokens = createTaskTokens('platform secret')
const requests = 60

it('sixty requests at once do not hold back the answers that stream meanwhile', async () => {
  const model = createServer((request, response) => {
    request.resume()
    request.once('end', () => response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {}\n\n'))
  })
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
  let isOver = false
  let begun = 0
  let mostInATurn = 0
  // Answers are read between the turns: however many requests wait, the loop comes round to them after a few.
  const everyTurn = (): void => {
    mostInATurn = Math.max(mostInATurn, begun)
    begun = 0
    if (!isOver) setImmediate(everyTurn)
  }
  const broker = await startBroker({
    tokens,
    findTask: async (uid) => {
      begun += 1
      return { uid, provider: anthropic, spent: { tokens: 0, costUsd: 0 } }
    },
    findKey: async () => 'key',
    baseUrlOf: () => `http://127.0.0.1:${(model.address() as AddressInfo).port}`,
    recordCall: () => undefined,
    port: 0,
    log: silentLogger,
  })
  const sockets: Socket[] = []
  try {
    const connected = Array.from({ length: requests }, () => opened(broker.port))
    sockets.push(...(await Promise.all(connected)))
    everyTurn()
    // A listener takes one new connection a turn: they are all taken before the requests come.
    await Promise.all(sockets.map((socket) => answerOn(socket, 'GET /healthz HTTP/1.1\r\nhost: broker\r\n\r\n')))
    const call = `POST /v1/messages HTTP/1.1\r\nhost: broker\r\nauthorization: Bearer ${tokens.issue('uid-1')}`
    const bytes = `${call}\r\ncontent-length: 2\r\n\r\n{}`
    const answers = await Promise.all(sockets.map((socket) => answerOn(socket, bytes)))

    expect(answers.map((text) => text.split('\r\n')[0])).toEqual(Array(requests).fill('HTTP/1.1 200 OK'))
    // Four when they arrive and four in the turn right after them.
    expect(mostInATurn).toBeLessThanOrEqual(8)
  } finally {
    isOver = true
    for (const socket of sockets) socket.destroy()
    await broker.close()
    model.closeAllConnections()
    await new Promise((resolve) => model.close(resolve))
  }
})

function opened(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => resolve(socket))
    socket.once('error', reject)
  })
}

/** The first bytes of the answer. */
function answerOn(socket: Socket, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.once('data', (chunk: Buffer) => resolve(chunk.toString('latin1')))
    socket.once('error', reject)
    socket.write(bytes)
  })
}
