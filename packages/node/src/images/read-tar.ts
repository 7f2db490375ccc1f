import { ImageError } from './image-error.js'

/** One member of an archive. Its content has to be read to the end before the next one is asked for. */
export interface TarEntry {
  path: string
  kind: 'file' | 'directory' | 'link' | 'symlink' | 'other'
  mode: number
  sizeBytes: number
  /** Where a link leads. */
  target: string
  mtimeSeconds: number
  content: AsyncIterable<Buffer>
}

const block = 512
/** Names and attributes that come as content of their own. */
const maxHeaderBytes = 1024 * 1024
/** What every file system can keep: the year 2106. */
const latest = 2 ** 32 - 1
const kinds: Readonly<Record<string, TarEntry['kind']>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '1': 'link',
  '2': 'symlink',
  '5': 'directory',
}

/**
 * Reads a tar archive (ustar, pax, GNU) from a stream, which is read to its end, so that who counts or hashes it sees all of it,
 * and is closed where the reading ends early. Rejects with `InvalidArchive` where it is no archive or a part of one.
 */
export async function* readTar(stream: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const bytes = new ByteReader(stream)
  try {
    yield* entriesOf(bytes)
    await bytes.drain()
  } finally {
    await bytes.close()
  }
}

async function* entriesOf(bytes: ByteReader): AsyncGenerator<TarEntry> {
  let pax: Record<string, string> = {}
  let longName: string | undefined
  let longLink: string | undefined
  for (;;) {
    const header = await bytes.take(block)
    if (!header || header.every((byte) => byte === 0)) return
    checkSum(header)
    const type = String.fromCharCode(header[156] ?? 0)
    const ownSize = numberAt(header, 124, 12)
    if (type === 'x' || type === 'g' || type === 'L' || type === 'K') {
      if (ownSize > maxHeaderBytes) throw new ImageError('InvalidArchive', 'a header of the archive is too long')
      const text = (await bytes.whole(ownSize)).toString('utf8')
      await bytes.skipPadding(ownSize)
      if (type === 'x') pax = paxRecords(text)
      else if (type === 'L') longName = untilNul(text)
      else if (type === 'K') longLink = untilNul(text)
      continue
    }
    const sizeBytes = pax.size === undefined ? ownSize : Number(pax.size)
    if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0)
      throw new ImageError('InvalidArchive', 'an entry of the archive has no size')
    // Only parts of such a file are in the archive; written down as they come they would be another file.
    if (type === 'S' || Object.keys(pax).some((key) => key.startsWith('GNU.sparse.')))
      throw new ImageError('Unsupported', 'the archive has sparse files; make it without --sparse')
    const prefix = text(header, 345, 155)
    const isUstar = text(header, 257, 5) === 'ustar'
    const name = text(header, 0, 100)
    const kind = kinds[type] ?? 'other'
    const hasContent = kind === 'file' || kind === 'other'
    const content = bytes.content(hasContent ? sizeBytes : 0)
    yield {
      path: pax.path ?? longName ?? (isUstar && prefix && !isGnu(header) ? `${prefix}/${name}` : name),
      kind: kind === 'file' && name.endsWith('/') && longName === undefined ? 'directory' : kind,
      mode: numberAt(header, 100, 8),
      sizeBytes: kind === 'file' ? sizeBytes : 0,
      target: pax.linkpath ?? longLink ?? text(header, 157, 100),
      mtimeSeconds: Math.min(latest, Math.max(0, Math.floor(Number(pax.mtime ?? numberAt(header, 136, 12))))) || 0,
      content,
    }
    await content.drain()
    await bytes.skipPadding(hasContent ? sizeBytes : 0)
    pax = {}
    longName = longLink = undefined
  }
}

/** Old GNU archives keep times where ustar has the prefix. */
const isGnu = (header: Buffer): boolean => header.subarray(257, 265).toString('latin1') === 'ustar  \0'

function checkSum(header: Buffer): void {
  const sum = header.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 32 : byte), 0)
  if (numberAt(header, 148, 8) !== sum)
    throw new ImageError('InvalidArchive', 'this is no tar archive, or a damaged one')
}

function text(header: Buffer, start: number, length: number): string {
  return untilNul(header.subarray(start, start + length).toString('utf8'))
}

const untilNul = (value: string): string => value.split('\0')[0] ?? ''

/** Octal text, or a big number in base 256 as GNU writes it. */
function numberAt(header: Buffer, start: number, length: number): number {
  const field = header.subarray(start, start + length)
  if (((field[0] ?? 0) & 0x80) !== 0)
    return field.subarray(1).reduce((value, byte) => value * 256 + byte, (field[0] ?? 0) & 0x7f)
  const value = Number.parseInt(untilNul(field.toString('latin1')).trim() || '0', 8)
  return Number.isNaN(value) ? -1 : value
}

function paxRecords(content: string): Record<string, string> {
  const records: Record<string, string> = {}
  let rest = Buffer.from(content, 'utf8')
  while (rest.length > 0) {
    const space = rest.indexOf(32)
    const length = Number(rest.subarray(0, space).toString('latin1'))
    if (space < 1 || !Number.isSafeInteger(length) || length <= space || length > rest.length) break
    const record = rest.subarray(space + 1, length - 1).toString('utf8')
    const equals = record.indexOf('=')
    if (equals > 0) records[record.slice(0, equals)] = record.slice(equals + 1)
    rest = rest.subarray(length)
  }
  return records
}

interface Content extends AsyncIterable<Buffer> {
  /** Reads past what nobody has read. */
  drain(): Promise<void>
}

class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>
  #buffer: Buffer = Buffer.alloc(0)

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#source = stream[Symbol.asyncIterator]()
  }

  async drain(): Promise<void> {
    while (!(await this.#source.next()).done);
  }

  async close(): Promise<void> {
    await this.#source.return?.()
  }

  /** This many bytes; undefined where the stream ends before the first of them. */
  async take(length: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = []
    for (let missing = length; missing > 0; ) {
      const part = await this.#some(missing)
      if (!part) {
        if (parts.length === 0) return undefined
        throw new ImageError('InvalidArchive', 'the archive ends in the middle')
      }
      parts.push(part)
      missing -= part.length
    }
    return parts.length === 1 ? parts[0] : Buffer.concat(parts)
  }

  async whole(length: number): Promise<Buffer> {
    const found = length === 0 ? Buffer.alloc(0) : await this.take(length)
    if (!found) throw new ImageError('InvalidArchive', 'the archive ends in the middle')
    return found
  }

  async skipPadding(length: number): Promise<void> {
    const padding = (block - (length % block)) % block
    if (padding > 0) await this.whole(padding)
  }

  content(length: number): Content {
    let missing = length
    const next = async (): Promise<Buffer | undefined> => {
      if (missing === 0) return undefined
      const part = await this.#some(missing)
      if (!part) throw new ImageError('InvalidArchive', 'the archive ends in the middle')
      missing -= part.length
      return part
    }
    const drain = async (): Promise<void> => {
      while ((await next()) !== undefined);
    }
    return {
      drain,
      async *[Symbol.asyncIterator]() {
        for (let part = await next(); part; part = await next()) yield part
      },
    }
  }

  async #some(most: number): Promise<Buffer | undefined> {
    while (this.#buffer.length === 0) {
      const { value, done } = await this.#source.next()
      if (done) return undefined
      this.#buffer = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    }
    const part = this.#buffer.subarray(0, most)
    this.#buffer = this.#buffer.subarray(part.length)
    return part
  }
}
