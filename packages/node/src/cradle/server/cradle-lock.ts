import { createHash } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Takes the right to be the cradle of a data directory, until this process ends; false where another process has it.
 * Two cradles at once would end each other's cells and remove each other's sockets. The lock is a socket without a
 * file: the kernel drops it with the process, however that ends. Only Linux has such sockets; elsewhere nothing is locked.
 */
export function lockCradle(dataDir: string): Promise<boolean> {
  if (process.platform !== 'linux') return Promise.resolve(true)
  const name = `corral-cradle-${createHash('sha256').update(dataDir).digest('hex').slice(0, 32)}`
  const server = createServer((socket) => socket.destroy())
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
    )
    server.listen(`\0${name}`, () => {
      server.unref()
      resolve(true)
    })
  })
}
