import type { ProcessStreams } from './stream-upgrade.js'

/** Kubernetes' booleans in queries: absent, `0` and `false` in any case are false, everything else is true. */
export function queryFlag(query: URLSearchParams, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}

/**
 * The streams an exec or attach request asks for, under both spellings: the API server's (`stdin`) and the kubelet's
 * (`input`, `output`, `error`). With a terminal there is no stderr: everything arrives on stdout.
 */
export function processStreams(query: URLSearchParams): ProcessStreams {
  const tty = queryFlag(query, 'tty')
  return {
    stdin: queryFlag(query, 'stdin') || queryFlag(query, 'input'),
    stdout: queryFlag(query, 'stdout') || queryFlag(query, 'output'),
    stderr: !tty && (queryFlag(query, 'stderr') || queryFlag(query, 'error')),
    tty,
  }
}

/** Ports of a port-forward over WebSocket channels, `?ports=80&ports=81,82`; undefined when one is no port. */
export function forwardedPorts(query: URLSearchParams): number[] | undefined {
  const values = [...query.getAll('ports'), ...query.getAll('port')].flatMap((value) => value.split(','))
  const ports = values.filter((value) => value !== '').map(Number)
  return ports.every((port) => Number.isInteger(port) && port > 0 && port < 65_536) ? ports : undefined
}
