import { type ProcessClient, parseResize } from '../process/serve-process.js'
import type { ProcessStreams } from '../stream-upgrade.js'
import type { SpdySession, SpdyStream } from './session.js'

export type SpdyProcessVersion = 1 | 2 | 3 | 4

const lingerMs = 5_000

/** Protocol versions over SPDY, best first; v5 exists only over WebSocket. */
const versions: readonly (readonly [name: string, version: SpdyProcessVersion])[] = [
  ['v4.channel.k8s.io', 4],
  ['v3.channel.k8s.io', 3],
  ['v2.channel.k8s.io', 2],
  ['channel.k8s.io', 1],
]

/** The version for what a client offers; a client that offers nothing speaks the first. */
export function chooseProcessVersion(
  offered: readonly string[],
): { name: string; version: SpdyProcessVersion } | undefined {
  if (offered.length === 0) return { name: 'channel.k8s.io', version: 1 }
  const found = versions.find(([name]) => offered.includes(name))
  return found && { name: found[0], version: found[1] }
}

/** Names of the streams a client opens before the process may start. */
export function expectedStreams(streams: ProcessStreams, version: SpdyProcessVersion): string[] {
  const expected = ['error']
  if (streams.stdin) expected.push('stdin')
  if (streams.stdout) expected.push('stdout')
  if (streams.stderr) expected.push('stderr')
  if (streams.tty && version >= 3) expected.push('resize')
  return expected
}

/** Exec and attach over SPDY, once all expected streams are open. */
export function spdyProcessClient(
  session: SpdySession,
  open: ReadonlyMap<string, SpdyStream>,
  version: SpdyProcessVersion,
  gone: AbortSignal,
): ProcessClient {
  return {
    stdin: open.get('stdin') ?? noInput(),
    gone,
    onResize(listener) {
      const resizes = open.get('resize')
      if (resizes) void readResizes(resizes, listener)
    },
    async write(stream, chunk) {
      await open.get(stream)?.write(chunk)
    },
    async finish(status) {
      // Before v4 the error stream carries words, and only when something went wrong.
      const text = version >= 4 ? JSON.stringify(status) : status.status === 'Failure' ? status.message : undefined
      const error = open.get('error')
      if (text !== undefined) await error?.write(Buffer.from(text)).catch(() => {}) // gone in between
      for (const name of ['stdout', 'stderr', 'error']) open.get(name)?.end()
      await session.finish(lingerMs)
    },
  }
}

async function* noInput(): AsyncGenerator<Uint8Array> {}

/** Resize messages are JSON documents; one may arrive in pieces or with others. */
async function readResizes(stream: SpdyStream, listener: (columns: number, rows: number) => void): Promise<void> {
  let text = ''
  try {
    for await (const chunk of stream) {
      text = (text + Buffer.from(chunk).toString('utf8')).slice(-4096)
      for (let end = text.indexOf('}'); end >= 0; end = text.indexOf('}')) {
        const size = parseResize(text.slice(0, end + 1))
        text = text.slice(end + 1)
        if (size) listener(size.columns, size.rows)
      }
    }
  } catch {
    // The end of the connection is noticed elsewhere.
  }
}
