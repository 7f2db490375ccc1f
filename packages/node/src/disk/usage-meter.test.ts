import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { usageMeter } from './usage-meter.js'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-meter-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

it('counts again and again, also after its thread died: a disk that was full once is seen to have room', async () => {
  const program = join(directory, 'thread.mjs')
  writeFileSync(
    program,
    `import { parentPort } from 'node:worker_threads'
     let count = 0
     parentPort.on('message', ({ directory }) => {
       if (directory === 'dies') process.exit(7)
       parentPort.postMessage({ total: { bytes: ++count, inodes: 0 }, parts: {}, tookMs: 0 })
     })`,
  )
  const meter = usageMeter(program)
  const enough = { bytes: 1, inodes: 1 }
  const measured = async (of: string): Promise<number> => (await meter.measure({ directory: of, enough })).total.bytes
  expect([await measured('a'), await measured('b'), await measured('c')]).toEqual([1, 2, 3])
  await expect(measured('dies')).rejects.toThrow('ended with 7')
  expect([await measured('a'), await measured('b')]).toEqual([1, 2])
  await meter.close()
})

it('counts others while one count takes long', async () => {
  const program = join(directory, 'thread.mjs')
  writeFileSync(
    program,
    `import { parentPort } from 'node:worker_threads'
     parentPort.on('message', ({ directory }) => {
       const usage = { total: { bytes: 1, inodes: 0 }, parts: {}, tookMs: 0 }
       if (directory !== 'a million names') parentPort.postMessage(usage)
     })`,
  )
  const meter = usageMeter(program)
  const enough = { bytes: 1, inodes: 1 }
  const long = meter.measure({ directory: 'a million names', enough }).catch((error: Error) => error.message)
  const others = ['a', 'b', 'c', 'd', 'e'].map((name) => meter.measure({ directory: name, enough }))
  expect((await Promise.all(others)).map(({ total }) => total.bytes)).toEqual([1, 1, 1, 1, 1])
  await meter.close()
  expect(await long).toContain('ended with 1')
})
