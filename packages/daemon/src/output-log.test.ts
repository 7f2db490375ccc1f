import { spawnSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { OutputLog } from './output-log.js'

const kibibyte = 1024
const keep = { headBytes: 64 * kibibyte, tailBytes: 96 * kibibyte, stepBytes: 32 * kibibyte }
let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-output-'))
  for (const stream of ['stdout', 'stderr']) writeFileSync(join(directory, stream), '')
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** 16-byte words that say where in their stream they stand. */
const words = (stream: string, first: number, count: number): string =>
  Array.from({ length: count }, (_, i) => `${stream} ${String(first + i).padStart(8, '0')}\n`).join('')

async function readAll(log: OutputLog, from = 0): Promise<{ offset: number; text: string; stream: string }[]> {
  const cursor = await log.cursor(from)
  const chunks = []
  for (let chunk = await cursor.next(); chunk; chunk = await cursor.next())
    chunks.push({ offset: chunk.offset, stream: chunk.stream, text: Buffer.from(chunk.data).toString() })
  await cursor.close()
  return chunks
}

function canPunch(): boolean {
  const path = join(tmpdir(), `corral-punch-${process.pid}`)
  writeFileSync(path, Buffer.alloc(8 * kibibyte, 1))
  const { status } = spawnSync('fallocate', ['--punch-hole', '--offset', '0', '--length', '4096', path])
  rmSync(path)
  return status === 0
}

describe.skipIf(!canPunch())('an output longer than is kept (needs a file system with holes)', () => {
  it('gives the disk back, keeps beginning, end and offsets, and has the same gap after a restart', async () => {
    let log = await OutputLog.open(directory, keep)
    // Two megabytes in turns of both streams, eight kibibytes each.
    for (let turn = 0; turn < 256; turn++) {
      const stream = turn % 2 === 0 ? 'stdout' : 'stderr'
      appendFileSync(join(directory, stream), words(stream, (turn >> 1) * 512, 512))
      await log.observe()
    }
    const total = 2048 * kibibyte
    expect(log.length).toBe(total)
    const allocated = ['stdout', 'stderr'].reduce((sum, name) => sum + statSync(join(directory, name)).blocks * 512, 0)
    expect(allocated).toBeLessThan(400 * kibibyte)

    const chunks = await readAll(log)
    const gapAt = chunks.findIndex(
      ({ offset }, i) => i > 0 && offset !== chunks[i - 1]!.offset + chunks[i - 1]!.text.length,
    )
    const gapEnd = chunks[gapAt]!.offset
    expect(chunks[gapAt - 1]!.offset + chunks[gapAt - 1]!.text.length).toBeLessThanOrEqual(keep.headBytes)
    expect(total - gapEnd).toBeGreaterThanOrEqual(keep.tailBytes)
    expect(total - gapEnd).toBeLessThan(keep.tailBytes + keep.stepBytes + 16 * kibibyte)
    // No byte that is shown was dropped: each word says its place.
    for (const { text } of chunks) expect(text.replace(/(stdout|stderr) \d{8}\n/g, '')).toBe('')
    expect(chunks.at(-1)!.text.endsWith('stderr 00065535\n')).toBe(true)

    await log.close()
    log = await OutputLog.open(directory, keep)
    expect(await readAll(log)).toEqual(chunks)
    expect((await readAll(log, keep.headBytes + 5))[0]).toMatchObject({ offset: gapEnd })
    await log.close()
  })

  it('control: one that fits has no gap', async () => {
    const log = await OutputLog.open(directory, keep)
    appendFileSync(join(directory, 'stdout'), words('stdout', 0, 8 * kibibyte))
    await log.observe()
    const chunks = await readAll(log)
    expect(chunks.map(({ text }) => text).join('')).toBe(words('stdout', 0, 8 * kibibyte))
    await log.close()
  })
})
