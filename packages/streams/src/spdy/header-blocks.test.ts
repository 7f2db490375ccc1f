import { constants, createDeflate, createInflate } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { spdyDictionary } from './dictionary.js'
import { HeaderReader, HeaderWriter } from './header-blocks.js'

function plainBlock(headers: Record<string, string>): Buffer {
  const word = (value: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return bytes
  }
  const entries = Object.entries(headers)
  const texts = entries.flat().flatMap((text) => [word(text.length), Buffer.from(text)])
  return Buffer.concat([word(entries.length), ...texts])
}

/** Compresses as clients do: one context for all blocks of a connection. */
function compressor() {
  const deflate = createDeflate({ dictionary: spdyDictionary, flush: constants.Z_SYNC_FLUSH })
  return (plain: Buffer) =>
    new Promise<Buffer>((resolve) => {
      const parts: Buffer[] = []
      deflate.on('data', (part) => parts.push(part))
      deflate.write(plain, () => {
        deflate.removeAllListeners('data')
        resolve(Buffer.concat(parts))
      })
    })
}

describe('header blocks', () => {
  it('the dictionary has the length and the words of the specification', () => {
    expect(spdyDictionary.length).toBe(1423)
    expect(spdyDictionary.toString('latin1')).toContain('application/xhtml+xml')
  })

  it('are read one after the other in one compression context', async () => {
    const compress = compressor()
    const reader = new HeaderReader()
    for (const type of ['error', 'stdin', 'stdout']) {
      const headers = await reader.read(await compress(plainBlock({ Streamtype: type, port: '80' })))
      expect(Object.fromEntries(headers)).toEqual({ streamtype: type, port: '80' })
    }
    reader.close()
  })

  it.each([
    {
      what: 'no compression at all',
      block: async () => Buffer.from('hello, this is no zlib'),
      says: 'incorrect header check',
    },
    {
      what: 'a count without entries',
      block: async () => compressor()(Buffer.from([0, 0, 0, 9])),
      says: 'is out of range',
    },
    {
      what: 'a length beyond the block',
      block: async () => compressor()(Buffer.from([0, 0, 0, 1, 0xff, 0, 0, 0])),
      says: 'a header is longer than its block',
    },
    { what: 'a bomb', block: async () => compressor()(Buffer.alloc(10_000_000)), says: 'headers of more than 64 KiB' },
  ])('reject $what', async ({ block, says }) => {
    const reader = new HeaderReader()
    await expect(reader.read(await block())).rejects.toThrow(says)
    reader.close()
  })

  it('written by us are what zlib expects', async () => {
    const writer = new HeaderWriter()
    const inflate = createInflate({ dictionary: spdyDictionary, flush: constants.Z_SYNC_FLUSH })
    const parts: Buffer[] = []
    inflate.on('data', (part) => parts.push(part))
    for (let count = 1; count <= 2; count++) {
      await new Promise<void>((resolve, reject) => {
        inflate.write(writer.emptyBlock(), (error) => (error ? reject(error) : resolve()))
      })
      expect(Buffer.concat(parts).length).toBe(4 * count)
    }
    inflate.destroy()
  })
})
