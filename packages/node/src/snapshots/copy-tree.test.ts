import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { copyTree } from './copy-tree.js'
import { podPlace } from './pod-place.js'

const { signal } = new AbortController()
const hostUid = process.getuid?.() ?? 0
let scratch: string
let outside: string

beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'corral-copy-'))
  outside = join(scratch, 'outside')
  mkdirSync(outside)
  chmodSync(outside, 0o700)
  mkdirSync(join(scratch, 'tree'))
  writeFileSync(join(scratch, 'tree', 'file'), 'of the snapshot')
  mkdirSync(join(scratch, 'pod', 'volumes', 'work'), { recursive: true })
})
afterEach(() => rmSync(scratch, { recursive: true, force: true }))

/** Copies the tree to a path that is a part of a volume, of which the pod has the whole elsewhere. */
function copyToPart(): Promise<void> {
  const directory = join(scratch, 'pod')
  const place = podPlace(
    {
      spec: {
        containers: [{ name: 'main', volumeMounts: [{ name: 'work', mountPath: '/cache', subPath: 'part/deep' }] }],
        volumes: [{ name: 'work', emptyDir: {} }],
      },
    },
    { directory, home: join(directory, 'home'), tmp: join(directory, 'tmp'), logs: '', hosts: '' },
    '/cache',
  )
  return copyTree({ source: join(scratch, 'tree'), place, staging: join(directory, 'staging'), hostUid, signal })
}

it('a snapshot is copied to a part of a volume', async () => {
  await copyToPart()
  expect(readFileSync(join(scratch, 'pod/volumes/work/part/deep/file'), 'utf8')).toBe('of the snapshot')
})

it.each(['part', 'part/deep'])(
  'a pod that puts a link in the place of %s opens no directory of the machine',
  async (place) => {
    const path = join(scratch, 'pod/volumes/work', place)
    mkdirSync(join(path, '..'), { recursive: true })
    mkdirSync(join(outside, 'deep'), { mode: 0o700 })
    symlinkSync(outside, path)
    await expect(copyToPart()).rejects.toMatchObject({ code: expect.stringMatching(/^(ENOTDIR|ELOOP)$/) })
    expect(statSync(outside).mode & 0o777).toBe(0o700)
    expect(statSync(join(outside, 'deep')).mode & 0o777).toBe(0o700)
  },
)
