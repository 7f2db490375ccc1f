import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readEventLines } from './event-lines.js'

let directory: string
let path: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'corral-lines-'))
  path = join(directory, 'events.ndjson')
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const line = (sequence: number, more: object = {}): string => `${JSON.stringify({ sequence, ...more })}\n`
const sequences = async (...asked: [number, number?, number?]): Promise<[number[], number]> => {
  const { events, nextOffset } = await readEventLines(path, ...asked)
  return [events.map(({ sequence }) => sequence), nextOffset]
}

describe('the lines of an event log', () => {
  it('are whole ones from an offset on; one without its end is left for the next call', async () => {
    await writeFile(path, `${line(1)}${line(2)}{"sequence":3`)
    const both = line(1).length + line(2).length
    expect(await sequences(0)).toEqual([[1, 2], both])
    expect(await sequences(line(1).length)).toEqual([[2], both])
    expect(await sequences(both)).toEqual([[], both])
    await appendFile(path, '}\n')
    expect(await sequences(both)).toEqual([[3], both + line(3).length])
  })

  it('end at the offset that is the end, wherever in a line that is', async () => {
    await writeFile(path, `${line(1)}${line(2)}`)
    const first = line(1).length
    expect(await sequences(0, first)).toEqual([[1], first])
    expect(await sequences(0, first + 3)).toEqual([[1], first])
    expect(await sequences(first, first + 3)).toEqual([[], first])
    expect(await sequences(first, first)).toEqual([[], first])
  })

  it('are read whole where one is longer than what is read at once', async () => {
    const long = line(1, { text: 'x'.repeat(600 * 1024) })
    await writeFile(path, `${long}${line(2)}`)
    const [found] = await sequences(0)
    expect(found[0]).toBe(1)
    expect(await sequences(long.length)).toEqual([[2], long.length + line(2).length])
  })

  it('behind a sequence are told apart by their first member; damaged ones are left out', async () => {
    await writeFile(path, `${line(1)}\n{damaged\n{"time":"t","sequence":2}\n${line(3)}${line(12)}`)
    expect((await sequences(0))[0]).toEqual([1, 2, 3, 12])
    expect((await sequences(0, Number.POSITIVE_INFINITY, 2))[0]).toEqual([3, 12])
    expect((await sequences(0, Number.POSITIVE_INFINITY, 12))[0]).toEqual([])
  })

  it('of a file that is not there are none; one that cannot be read is an error', async () => {
    expect(await sequences(5)).toEqual([[], 5])
    await expect(readEventLines(directory, 0)).rejects.toMatchObject({ code: 'EISDIR' })
  })
})
