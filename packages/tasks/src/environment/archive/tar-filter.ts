import { SnapshotError } from '@corral/ports'

/** What went through a filter, and what it took away. */
export interface TarSummary {
  /** Files, directories and links. */
  entries: number
  stripped: { setuid: number; devices: number }
}

/**
 * Looks through a tar stream of a sandbox while it is written down: set-id bits and devices are taken away, and a file that holds
 * one of the secrets refuses the whole archive by its name. The stream is a sandbox's word: what is no tar, or ends before its
 * end mark, is refused.
 */
export interface TarFilter {
  /** What is to be written for this piece. Throws a `SnapshotError`. */
  push(chunk: Uint8Array): Buffer
  /** The end of the stream. Throws a `SnapshotError` where the archive was cut. */
  end(): TarSummary
}

const block = 512
/** Long names and attributes of one entry; more is no archive of a build. */
const maxMetaBytes = 1024 * 1024

interface Entry {
  name: string
  type: string
  /** Bytes of content and of what fills the last block. */
  contentLeft: number
  paddingLeft: number
  isDropped: boolean
}

export function createTarFilter(secrets: readonly string[] = []): TarFilter {
  const needles = secrets.filter((each) => each !== '').map((each) => Buffer.from(each))
  const overlap = Math.max(0, ...needles.map(({ length }) => length - 1))
  const summary: TarSummary = { entries: 0, stripped: { setuid: 0, devices: 0 } }
  let header: Buffer = Buffer.alloc(0)
  let entry: Entry | undefined
  /** Headers that belong to the entry after them: they go where it goes. */
  let held: Buffer[] = []
  let meta: Buffer[] = []
  let longName: string | undefined
  let tail: Buffer = Buffer.alloc(0)
  let hasEnded = false

  /** A name may be what must not be told. */
  const withoutSecrets = (name: string): string =>
    secrets.filter((each) => each !== '').reduce((left, secret) => left.replaceAll(secret, '***'), name)

  const scan = (piece: Buffer): void => {
    if (!entry || needles.length === 0) return
    const seen = Buffer.concat([tail, piece])
    if (needles.some((needle) => seen.includes(needle)))
      throw new SnapshotError('SecretFound', `${withoutSecrets(entry.name)} holds a secret of the set-up`)
    tail = seen.subarray(Math.max(0, seen.length - overlap))
  }

  /** The header as it is written; undefined where the entry is left out. */
  const begin = (found: Buffer, out: Buffer[]): void => {
    const type = String.fromCharCode(found[156] || 48)
    const size = numberAt(found, 124, 12)
    const isMeta = 'LKxg'.includes(type)
    if (isMeta && size > maxMetaBytes) throw notATar('a name is too long')
    const name = isMeta ? '' : (longName ?? nameOf(found))
    const isDevice = '346'.includes(type)
    // The directory itself belongs to the template of the sandbox it is unpacked in.
    const isDropped = isDevice || (type === '5' && /^\.?\/*$/.test(name))
    entry = { name, type, contentLeft: size, paddingLeft: (block - (size % block)) % block, isDropped }
    tail = Buffer.alloc(0)
    if (isMeta) {
      held.push(found)
      meta = []
      return
    }
    longName = undefined
    if (isDevice) summary.stripped.devices += 1
    else if (!isDropped) {
      summary.entries += 1
      out.push(...held, withoutSetId(found, summary))
    }
    held = []
  }

  const content = (piece: Buffer, out: Buffer[]): void => {
    if (!entry) return
    const inContent = Math.min(piece.length, entry.contentLeft)
    entry.contentLeft -= inContent
    entry.paddingLeft -= piece.length - inContent
    const body = piece.subarray(0, inContent)
    if ('LKxg'.includes(entry.type)) {
      held.push(piece)
      meta.push(body)
    } else if (!entry.isDropped) {
      scan(body)
      out.push(piece)
    }
    if (entry.contentLeft > 0 || entry.paddingLeft > 0) return
    if (entry.type === 'L') longName = Buffer.concat(meta).toString('utf8').replace(/\0.*$/s, '')
    if (entry.type === 'x') longName = paxPath(Buffer.concat(meta).toString('utf8')) ?? longName
    entry = undefined
  }

  return {
    push(chunk) {
      const out: Buffer[] = []
      let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
      while (rest.length > 0) {
        if (hasEnded) break // zeros up to the size of a record
        if (entry) {
          const piece = rest.subarray(0, entry.contentLeft + entry.paddingLeft)
          rest = rest.subarray(piece.length)
          content(piece, out)
          continue
        }
        const missing = block - header.length
        header = Buffer.concat([header, rest.subarray(0, missing)])
        rest = rest.subarray(missing)
        if (header.length < block) break
        const found = header
        header = Buffer.alloc(0)
        if (found.every((byte) => byte === 0)) {
          hasEnded = true
          out.push(Buffer.alloc(2 * block))
          break
        }
        if (checksumOf(found) !== numberAt(found, 148, 8)) throw notATar('a checksum is wrong')
        begin(found, out)
        if (entry && sizeLeft(entry) === 0) content(Buffer.alloc(0), out)
      }
      return Buffer.concat(out)
    },
    end() {
      if (!hasEnded) throw notATar('it ends too early')
      return summary
    },
  }
}

const sizeLeft = ({ contentLeft, paddingLeft }: Entry): number => contentLeft + paddingLeft

const notATar = (why: string): SnapshotError =>
  new SnapshotError('Failed', `what the sandbox sent is no whole archive: ${why}`)

function text(found: Buffer, from: number, length: number): string {
  return found.toString('utf8', from, from + length).replace(/\0.*$/s, '')
}

/** Octal, or binary for what does not fit. */
function numberAt(found: Buffer, from: number, length: number): number {
  if ((found[from] ?? 0) & 0x80) {
    const value = Number(found.readBigUInt64BE(from + length - 8))
    if (Number.isSafeInteger(value)) return value
    throw notATar('a size is too large')
  }
  const digits = text(found, from, length).trim()
  if (!/^[0-7]*$/.test(digits)) throw notATar('a number is none')
  return Number.parseInt(digits || '0', 8)
}

function nameOf(found: Buffer): string {
  const isPosix = text(found, 257, 6) === 'ustar' && found[262] === 0
  const prefix = isPosix ? text(found, 345, 155) : ''
  return prefix ? `${prefix}/${text(found, 0, 100)}` : text(found, 0, 100)
}

/** Lines of `LENGTH KEY=VALUE`. */
const paxPath = (records: string): string | undefined => /^\d+ path=(.*)$/m.exec(records)?.[1]

/** The sum of its bytes, its own field counted as spaces. */
function checksumOf(found: Buffer): number {
  let sum = 0
  for (const [index, byte] of found.entries()) sum += index >= 148 && index < 156 ? 32 : byte
  return sum
}

function withoutSetId(found: Buffer, summary: TarSummary): Buffer {
  const mode = numberAt(found, 100, 8)
  // On a directory the group's bit says who owns new files in it, which set-up may have meant.
  const isDirectory = found[156] === 53
  if ((mode & 0o6000) === 0 || isDirectory) return found
  summary.stripped.setuid += 1
  const plain = Buffer.from(found)
  plain.write(`${(mode & ~0o6000).toString(8).padStart(7, '0')}\0`, 100, 'latin1')
  plain.write(`${checksumOf(plain).toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return plain
}
