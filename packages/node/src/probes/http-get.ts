import { connect as connectTls } from 'node:tls'
import type { ByteStream } from '@corral/ports'
import { duplexFrom } from '../streams/duplex-from.js'

export interface HttpGet {
  path: string
  /** For the Host header. */
  host: string
  headers: readonly { name: string; value: string }[]
  isTls: boolean
}

const longestHeadBytes = 16 * 1024

/** One GET over a connection that is already open: the status code. The body is not read. */
export async function httpStatus(connection: ByteStream, request: HttpGet): Promise<number> {
  const plain = duplexFrom(connection)
  const socket = request.isTls ? connectTls({ socket: plain, rejectUnauthorized: false, servername: '' }) : plain
  try {
    socket.write(requestHead(request))
    let head = ''
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      head += chunk.toString('latin1')
      const line = /^HTTP\/1\.[01] (\d{3})/.exec(head)
      if (line) return Number(line[1])
      if (head.length > longestHeadBytes || head.includes('\n')) break
    }
    throw new Error('malformed HTTP response')
  } finally {
    socket.destroy()
    connection.destroy()
  }
}

function requestHead({ path, host, headers }: HttpGet): string {
  const own = new Map([
    ['host', `Host: ${host}`],
    ['user-agent', 'User-Agent: kube-probe/1.34'],
    ['accept', 'Accept: */*'],
  ])
  for (const { name, value } of headers) own.set(name.toLowerCase(), `${name}: ${value.replace(/[\r\n]/g, ' ')}`)
  const target = path.startsWith('/') ? path : `/${path}`
  return [`GET ${target.replace(/[\s]/g, '%20')} HTTP/1.1`, ...own.values(), 'Connection: close', '', ''].join('\r\n')
}
