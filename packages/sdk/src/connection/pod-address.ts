import { isIP } from 'node:net'

/** The address to use of a pod: IPv4 before IPv6, in its shortest spelling; undefined where none is an address. */
export function podAddress(addresses: readonly string[] | undefined): string | undefined {
  const known = (addresses ?? []).map((text) => canonical(text.trim())).filter((text) => text !== undefined)
  return known.find((address) => isIP(address) === 4) ?? known[0]
}

function canonical(address: string): string | undefined {
  if (isIP(address) === 4) return address
  if (isIP(address) !== 6) return undefined
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped && isIP(mapped) === 4) return mapped
  return new URL(`http://[${address}]/`).hostname.slice(1, -1)
}
