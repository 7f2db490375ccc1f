import { deflateSync, inflateSync } from 'node:zlib'

/**
 * A screenshot as a PNG with a palette, a quarter of its size: pages have few colours, and the edge of a letter may be off by
 * a shade. Takes what Chromium writes: eight bits a channel, not interlaced.
 */
export function smallPng(source: Buffer): Buffer {
  const { width, height, pixels } = decode(source)
  const counts = new Map<number, number>()
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1)
  const palette = [...counts].sort((one, other) => other[1] - one[1]).map(([colour]) => colour)
  const kept = spread(palette)
  const places = new Map(palette.map((colour) => [colour, nearest(kept, colour)]))
  const rows = Buffer.alloc((width + 1) * height)
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1)
      rows[y * (width + 1) + 1 + x] = places.get(pixels[y * width + x] as number) as number
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 3, 0, 0, 0], 8)
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('PLTE', Buffer.from(kept.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]))),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10])

/** Up to 256 colours: the most frequent ones that are not almost the same as one that is already taken. */
function spread(colours: readonly number[]): number[] {
  for (let step = 0; ; step += 2) {
    const kept: number[] = []
    for (const colour of colours) {
      if (kept.some((other) => distance(other, colour) <= step)) continue
      kept.push(colour)
      if (kept.length > 256) break
    }
    if (kept.length <= 256) return kept
  }
}

function nearest(palette: readonly number[], colour: number): number {
  let best = 0
  for (let at = 1; at < palette.length; at += 1)
    if (distance(palette[at] as number, colour) < distance(palette[best] as number, colour)) best = at
  return best
}

/** The channel that is furthest away. */
function distance(one: number, other: number): number {
  const red = Math.abs((one >> 16) - (other >> 16))
  const green = Math.abs(((one >> 8) & 255) - ((other >> 8) & 255))
  return Math.max(red, green, Math.abs((one & 255) - (other & 255)))
}

function decode(source: Buffer): { width: number; height: number; pixels: Uint32Array } {
  const width = source.readUInt32BE(16)
  const height = source.readUInt32BE(20)
  const channels = { 2: 3, 6: 4 }[source[25] as number]
  if (source[24] !== 8 || channels === undefined || source[28] !== 0) throw new Error('not a PNG of a screenshot')
  const parts: Buffer[] = []
  for (let at = 8; at < source.length; ) {
    const length = source.readUInt32BE(at)
    if (source.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(source.subarray(at + 8, at + 8 + length))
    at += 12 + length
  }
  const data = inflateSync(Buffer.concat(parts))
  const stride = width * channels
  const pixels = new Uint32Array(width * height)
  let above = new Uint8Array(stride)
  for (let y = 0; y < height; y += 1) {
    const from = y * (stride + 1)
    const row = unfiltered(data[from] as number, data.subarray(from + 1, from + 1 + stride), above, channels)
    for (let x = 0; x < width; x += 1) {
      const [red = 0, green = 0, blue = 0] = row.subarray(x * channels, x * channels + 3)
      pixels[y * width + x] = (red << 16) | (green << 8) | blue
    }
    above = row
  }
  return { width, height, pixels }
}

/** A row as it was before its filter (PNG, section 9). */
function unfiltered(filter: number, row: Uint8Array, above: Uint8Array, channels: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(row.length)
  for (let at = 0; at < row.length; at += 1) {
    const left = at >= channels ? (out[at - channels] as number) : 0
    const up = above[at] as number
    const corner = at >= channels ? (above[at - channels] as number) : 0
    out[at] = (row[at] as number) + predicted(filter, left, up, corner)
  }
  return out
}

function predicted(filter: number, left: number, up: number, corner: number): number {
  if (filter < 3) return [0, left, up][filter] as number
  if (filter === 3) return (left + up) >> 1
  const guess = left + up - corner
  const [toLeft, toUp, toCorner] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)]
  if (toLeft <= toUp && toLeft <= toCorner) return left
  return toUp <= toCorner ? up : corner
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const out = Buffer.alloc(body.length + 8)
  out.writeUInt32BE(data.length, 0)
  body.copy(out, 4)
  out.writeUInt32BE(checksum(body), body.length + 4)
  return out
}

function checksum(bytes: Buffer): number {
  let sum = 0xffffffff
  for (const byte of bytes) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0)
  }
  return ~sum >>> 0
}
