import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from '@corral/testing'
import { expect, it } from 'vitest'
import { largestUses } from './disk-uses.js'

it('what uses the disk is told with the names of sandboxes, the largest first', async () => {
  await using scratch = temporaryDirectory()
  const file = (path: string, bytes: number): void => {
    mkdirSync(join(scratch.path, path, '..'), { recursive: true })
    writeFileSync(join(scratch.path, path), Buffer.alloc(bytes, 1))
  }
  file('mirrors/one.git/pack', 12_000_000)
  file('pods/uid-1/home/big', 30_000_000)
  file('pods/uid-2/home/big', 20_000_000)
  file('pods/uid-3/home/small', 1_000)
  writeFileSync(join(scratch.path, 'pods/uid-1/record.json'), JSON.stringify({ podUid: 'uid-1', name: 'default-abc' }))
  writeFileSync(join(scratch.path, 'pods/uid-2/record.json'), '{')
  expect(largestUses(scratch.path)).toBe(
    '; most of it used by sandbox default-abc 0.03 GB, sandbox uid-2 0.02 GB, mirrors 0.01 GB',
  )
})

it('a data directory that is not there uses nothing', () => {
  expect(largestUses('/nonexistent/data')).toBe('')
})
