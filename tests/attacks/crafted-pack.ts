import { createHash } from 'node:crypto'
import { deflateSync } from 'node:zlib'

/** Pack files made by hand: what no git would write, and every git will read. */

const types = { commit: 1, tree: 2, blob: 3 } as const

export interface CraftedObject {
  id: string
  entry: Buffer
}

export function idOf(type: keyof typeof types, content: Uint8Array): string {
  return createHash('sha1').update(`${type} ${content.length}\0`).update(content).digest('hex')
}

export function whole(type: keyof typeof types, content: Uint8Array): CraftedObject {
  return {
    id: idOf(type, content),
    entry: Buffer.concat([header(types[type], content.length), deflateSync(content, { level: 9 })]),
  }
}

/**
 * A blob as a delta on `base` that repeats the base's `baseBytes` until `bytes` are full: each copy instruction is seven
 * bytes and stands for up to 16 MiB, so a few hundred bytes stand for gigabytes.
 */
export function repeating(base: string, baseBytes: number, bytes: number, id: string): CraftedObject {
  const parts: Buffer[] = [Buffer.from([...varint(baseBytes), ...varint(bytes)])]
  for (let left = bytes; left > 0; left -= baseBytes) {
    const take = Math.min(left, baseBytes)
    // Copy from offset 0: three size bytes follow.
    parts.push(Buffer.from([0x80 | 0x70, take & 0xff, (take >> 8) & 0xff, (take >> 16) & 0xff]))
  }
  const delta = Buffer.concat(parts)
  return { id, entry: Buffer.concat([header(7, delta.length), Buffer.from(base, 'hex'), deflateSync(delta)]) }
}

export function tree(entries: readonly { mode: string; name: string; id: string }[]): Buffer {
  return Buffer.concat(
    entries.flatMap(({ mode, name, id }) => [Buffer.from(`${mode} ${name}\0`), Buffer.from(id, 'hex')]),
  )
}

export function commit(treeId: string, parent: string, message: string): Buffer {
  const who = 'Mallory <mallory@example.org> 1700000000 +0000'
  return Buffer.from(`tree ${treeId}\nparent ${parent}\nauthor ${who}\ncommitter ${who}\n\n${message}\n`)
}

/** A bundle with one pack and the refs it claims to bring. */
export function bundle(options: {
  prerequisite: string
  refs: readonly { name: string; id: string }[]
  objects: readonly CraftedObject[]
}): Buffer {
  const count = Buffer.alloc(4)
  count.writeUInt32BE(options.objects.length)
  const version = Buffer.from([0, 0, 0, 2])
  const pack = Buffer.concat([Buffer.from('PACK'), version, count, ...options.objects.map(({ entry }) => entry)])
  const refs = options.refs.map(({ id, name }) => `${id} ${name}\n`).join('')
  const trailer = createHash('sha1').update(pack).digest()
  return Buffer.concat([Buffer.from(`# v2 git bundle\n-${options.prerequisite} base\n${refs}\n`), pack, trailer])
}

/** Type and size of a pack entry: four bits of the size beside the type, then seven at a time. */
function header(type: number, size: number): Buffer {
  const bytes: number[] = []
  let rest = Math.floor(size / 16)
  bytes.push((type << 4) | (size & 15) | (rest > 0 ? 0x80 : 0))
  while (rest > 0) {
    const next = Math.floor(rest / 128)
    bytes.push((rest & 127) | (next > 0 ? 0x80 : 0))
    rest = next
  }
  return Buffer.from(bytes)
}

function varint(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  do {
    const next = Math.floor(rest / 128)
    bytes.push((rest & 127) | (next > 0 ? 0x80 : 0))
    rest = next
  } while (rest > 0)
  return bytes
}
