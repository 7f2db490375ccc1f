/** How frames look under one sub-protocol. */
export interface ChannelCodec {
  readonly name: string
  readonly version: 1 | 2 | 3 | 4 | 5
  readonly base64: boolean
  /** Whether a frame can say that a channel ends. */
  readonly halfClose: boolean
}

/** SPDY frames inside binary messages: what kubectl 1.31 and later use for port-forward. */
export const tunnelProtocol = 'SPDY/3.1+portforward.k8s.io'

const processCodecs: readonly ChannelCodec[] = [5, 4, 3, 2, 1].flatMap((number) => {
  const version = number as ChannelCodec['version']
  const prefix = version === 1 ? '' : `v${version}.`
  return [
    { name: `${prefix}channel.k8s.io`, version, base64: false, halfClose: version === 5 },
    { name: `${prefix}base64.channel.k8s.io`, version, base64: true, halfClose: version === 5 },
  ]
})

/** Our own client offers the first: v4 plus v5's close frame, so that a forwarded connection can half-close. */
const portCodecs: readonly ChannelCodec[] = [
  { name: 'v1.portforward.corral.dev', version: 4, base64: false, halfClose: true },
  { name: 'v4.channel.k8s.io', version: 4, base64: false, halfClose: false },
  { name: 'v4.base64.channel.k8s.io', version: 4, base64: true, halfClose: false },
]

/**
 * The codec for what a client offers, undefined when we know none of it. A client that offers nothing gets the oldest
 * binary form, as Kubernetes does it.
 */
export function chooseCodec(kind: 'process' | 'port', offered: readonly string[]): ChannelCodec | undefined {
  const codecs = kind === 'process' ? processCodecs : portCodecs
  if (offered.length === 0) {
    return { name: '', version: kind === 'process' ? 1 : 4, base64: false, halfClose: false }
  }
  return codecs.find((codec) => offered.includes(codec.name))
}

/** Sub-protocols of a request's header, in the client's order. */
export function offeredProtocols(header: string | undefined): string[] {
  return (header ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

export function encodeFrame(codec: ChannelCodec, channel: number, payload: Uint8Array): Buffer | string {
  if (codec.base64) return `${channel}${Buffer.from(payload).toString('base64')}`
  const frame = Buffer.allocUnsafe(payload.length + 1)
  frame[0] = channel
  frame.set(payload, 1)
  return frame
}

/** Channel and payload of a message; undefined for an empty one. */
export function decodeFrame(codec: ChannelCodec, data: Buffer): { channel: number; payload: Buffer } | undefined {
  const first = data[0]
  if (first === undefined) return undefined
  if (!codec.base64) return { channel: first, payload: data.subarray(1) }
  return { channel: first - 48, payload: Buffer.from(data.subarray(1).toString('latin1'), 'base64') }
}
