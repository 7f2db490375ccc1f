import { constants, createInflate, type Inflate } from 'node:zlib'
import { spdyDictionary } from './dictionary.js'

const maxInflatedBytes = 64 * 1024

/** Inflates header blocks, which share one compression context: they must be read in order, one at a time. */
export class HeaderReader {
  private readonly inflate: Inflate
  private parts: Buffer[] = []
  private bytes = 0
  private failure: Error | undefined

  constructor() {
    this.inflate = createInflate({ dictionary: spdyDictionary, flush: constants.Z_SYNC_FLUSH })
    this.inflate.on('data', (part: Buffer) => {
      this.parts.push(part)
      this.bytes += part.length
      if (this.bytes <= maxInflatedBytes) return
      this.failure ??= new RangeError('headers of more than 64 KiB')
      this.inflate.destroy()
    })
    this.inflate.on('error', (error) => {
      this.failure ??= error
    })
  }

  /** Headers by lower-case name. Rejects for good once a block is malformed. */
  async read(block: Uint8Array): Promise<Map<string, string>> {
    await new Promise<void>((resolve, reject) => {
      if (this.failure || this.inflate.destroyed) return reject(this.failure ?? new Error('closed'))
      const onClose = () => reject(this.failure ?? new Error('closed'))
      this.inflate.once('close', onClose)
      this.inflate.write(block, (error) => {
        this.inflate.off('close', onClose)
        const failure = error ?? this.failure
        if (failure) reject(failure)
        else resolve()
      })
    })
    const plain = Buffer.concat(this.parts)
    this.parts = []
    this.bytes = 0
    return parseHeaders(plain)
  }

  close(): void {
    this.inflate.destroy()
  }
}

/** Name and value pairs after a count, each with its length in four bytes. Throws when they do not add up. */
export function parseHeaders(plain: Buffer): Map<string, string> {
  let offset = 4
  const text = () => {
    const length = plain.readUInt32BE(offset)
    offset += 4 + length
    if (offset > plain.length) throw new RangeError('a header is longer than its block')
    return plain.toString('latin1', offset - length, offset)
  }
  const headers = new Map<string, string>()
  for (let count = plain.readUInt32BE(0); count > 0; count--) headers.set(text().toLowerCase(), text())
  return headers
}

/** Writes header blocks without compressing: a reply carries no headers, so there is nothing to gain. */
export class HeaderWriter {
  private isFirst = true

  emptyBlock(): Buffer {
    const plain = Buffer.alloc(4)
    const stored = Buffer.alloc(5)
    stored.writeUInt16LE(plain.length, 1)
    stored.writeUInt16LE(plain.length ^ 0xffff, 3)
    // The empty stored block after it is a flush: Go's reader waits for more without one.
    const parts: Buffer[] = [stored, plain, Buffer.from([0, 0, 0, 0xff, 0xff])]
    if (this.isFirst) parts.unshift(zlibHeader())
    this.isFirst = false
    return Buffer.concat(parts)
  }
}

/** Deflate with a 32 KiB window and a preset dictionary, named by its checksum. */
function zlibHeader(): Buffer {
  const header = Buffer.alloc(6)
  header.writeUInt16BE(0x78bb, 0)
  header.writeUInt32BE(adler32(spdyDictionary), 2)
  return header
}

function adler32(bytes: Uint8Array): number {
  let a = 1
  let b = 0
  for (const byte of bytes) {
    a = (a + byte) % 65_521
    b = (b + a) % 65_521
  }
  return ((b << 16) | a) >>> 0
}
