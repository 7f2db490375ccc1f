import { existsSync, readFileSync } from 'node:fs'
import { createServer, Socket } from 'node:net'
import { Frame } from '../../packages/node/src/cradle/protocol/frames.js'

// The Node supervisor, or, where its pod's /tmp has a word for it, what the code of that pod may make of it: `PLACE WORDS`.
const order = '/tmp/says'

const sayings: Readonly<Record<string, Buffer>> = {
  'a frame of 4 GiB': frame(Frame.exit, [], 2 ** 32 - 1),
  'a start without a number': frame(Frame.started, []),
  'an end of three bytes': frame(Frame.exit, [1, 2, 3]),
}

function frame(type: number, payload: readonly number[], size = payload.length): Buffer {
  const head = Buffer.alloc(5)
  head[0] = type
  head.writeUInt32LE(size, 1)
  return Buffer.concat([head, Buffer.from(payload)])
}

if (process.argv[2] === 'netns' || !existsSync(order)) {
  await import('../../packages/node/src/cradle/supervisor/node-supervisor.js')
} else {
  const [place, ...words] = readFileSync(order, 'utf8').split(' ')
  const said = sayings[words.join(' ')] ?? Buffer.alloc(0)
  const control = new Socket({ fd: Number(process.argv[4]) })
  control.on('end', () => process.exit(0)).resume()
  control.write(frame(Frame.started, [1, 0, 0, 0]))
  if (place === 'control') control.write(said)
  createServer((socket) => socket.on('error', () => {}).write(said)).listen({ fd: Number(process.argv[3]) })
}
