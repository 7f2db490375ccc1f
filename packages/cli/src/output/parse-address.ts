import { InvalidArgumentError } from 'commander'

export interface ListenAddress {
  host: string
  port: number
}

/** `:9090` on every address of the machine, `127.0.0.1:9090` and `[::1]:9090` on one. */
export function parseListenAddress(text: string): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (!match || port > 65_535)
    throw new InvalidArgumentError('Give host:port, such as 127.0.0.1:9090, or :9090 for every address.')
  return { host: match[1] ?? (match[2] || '0.0.0.0'), port }
}
