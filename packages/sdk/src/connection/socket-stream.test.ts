import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { socketStream } from './socket-stream.js'

it('sends many megabytes to a slow reader without a MaxListenersExceededWarning', async () => {
  const warnings: string[] = []
  const onWarning = (warning: Error): void => void warnings.push(warning.name)
  process.on('warning', onWarning)
  let bytes = 0
  const server = createServer((socket) => socket.on('data', (chunk) => (bytes += chunk.length)))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket: Socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  try {
    const stream = await socketStream(socket)
    const listeners = socket.listenerCount('close')
    // Each is larger than what a socket takes at once, so each has to wait.
    for (let count = 0; count < 30; count++) await stream.write(new Uint8Array(1 << 20))
    expect(socket.listenerCount('close')).toBe(listeners)
    expect(socket.listenerCount('error')).toBe(1)
    stream.end()
    await once(socket, 'close')
    expect(bytes).toBe(30 << 20)
    expect(warnings).toEqual([])
  } finally {
    process.off('warning', onWarning)
    server.close()
    socket.destroy()
  }
})

it('a write to a connection that is gone does not wait for ever', async () => {
  const server = createServer((socket) => socket.destroy())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  try {
    const stream = await socketStream(socket)
    const write = (): Promise<void> => stream.write(new Uint8Array(1 << 20))
    await expect(
      (async () => {
        for (;;) await write()
      })(),
    ).rejects.toThrow(/the connection is closed|EPIPE|ECONNRESET/)
  } finally {
    server.close()
    socket.destroy()
  }
})
