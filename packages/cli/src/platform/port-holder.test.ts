import { type AddressInfo, createServer } from 'node:net'
import { expect, it } from 'vitest'
import { explainPort } from './port-holder.js'

it('names the process that holds a port, and the flag that takes another', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = server.address() as AddressInfo
    const error = Object.assign(new Error('listen EADDRINUSE'), { code: 'EADDRINUSE' })
    expect(explainPort(error, port, '--port')).toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(new RegExp(`^port ${port} is taken by process ${process.pid} \\(`)),
      hint: expect.stringContaining('--port'),
    })
    expect(explainPort(error, 0, '--port')).toBe(error)
  } finally {
    server.close()
  }
})
