import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { writeAll } from './write-all.js'

describe('writeAll', () => {
  let directory: string
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'corral-write-all-'))
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  it.each([
    { what: 'nothing', sizes: [] },
    { what: 'one byte', sizes: [1] },
    { what: 'empty chunks between others', sizes: [0, 3, 0, 0, 5, 0] },
    { what: 'exactly one batch', sizes: [512 * 1024] },
    { what: 'a byte more than a batch', sizes: [512 * 1024, 1] },
    { what: 'a chunk of many batches', sizes: [3_000_001] },
    { what: 'chunks of a connection', sizes: Array<number>(50).fill(65_529) },
    { what: 'more single bytes than one write takes pieces', sizes: Array<number>(2_500).fill(1) },
  ])('writes $what in order and whole', async ({ sizes }) => {
    const path = join(directory, 'file')
    const chunks = numbered(sizes)
    const file = await open(path, 'wx')
    await writeAll(file, each(chunks))
    await file.close()
    expect((await readFile(path)).equals(Buffer.concat(chunks))).toBe(true)
  })

  it('goes on where the system takes less than it was given', async () => {
    const path = join(directory, 'file')
    const file = await open(path, 'wx')
    const { writev } = file
    const short = (buffers: readonly Uint8Array[]) => writev.call(file, [buffers[0]!.subarray(0, 3)])
    file.writev = short as typeof file.writev
    const chunks = numbered([1, 7, 0, 10, 3, 2])
    await writeAll(file, each(chunks))
    await file.close()
    expect([...(await readFile(path))]).toEqual([...Buffer.concat(chunks)])
  })

  it('fails with what the source says, after what is being written', async () => {
    const file = await open(join(directory, 'file'), 'wx')
    async function* broken() {
      yield Buffer.alloc(600 * 1024)
      throw new Error('the sender went away')
    }
    await expect(writeAll(file, broken())).rejects.toThrow('the sender went away')
    await file.close()
  })

  it('fails with what the disk says, and lets go of the source', async () => {
    const file = await open('/dev/full', 'w')
    let isReleased = false
    async function* endless() {
      try {
        for (;;) yield Buffer.alloc(64 * 1024)
      } finally {
        isReleased = true
      }
    }
    await expect(writeAll(file, endless())).rejects.toThrow('ENOSPC')
    await file.close()
    expect(isReleased).toBe(true)
  })
})

function numbered(sizes: readonly number[]): Buffer[] {
  let next = 0
  return sizes.map((size) => Buffer.from(Uint8Array.from({ length: size }, () => next++ % 251)))
}

async function* each(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks
}
