import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger } from '@corral/ports'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { DiskGuard, type GuardedPod } from './disk-guard.js'
import type { PodUsage } from './pod-usage.js'
import { reserveFile } from './reserve-file.js'
import { storageLimits } from './storage-limits.js'

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'corral-guard-'))
  mkdirSync(join(dataDir, 'pods'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

it('a pod that takes long to count does not put off the limit of another', async () => {
  const left: string[] = []
  const limits = storageLimits({ spec: { containers: [] } }, { bytes: '1', inodes: 1_000_000 })
  const pod = (uid: string): GuardedPod => ({
    uid,
    containers: [],
    limits,
    directory: uid,
    hostUid: undefined,
    halted: undefined,
    isOver: false,
    isCleared: false,
    halt: async () => void left.push(uid),
    evict: () => void left.push(uid),
    clear: async () => {},
  })
  const far = { bytes: 2 * limits.pod.bytes, inodes: 0 }
  let answer: (usage: PodUsage) => void = () => {}
  let asked = 0
  const guard = new DiskGuard({
    dataDir,
    pods: () => [pod('a million names'), pod('over its limit')],
    meter: {
      measure: ({ directory }) => {
        if (directory === 'over its limit') return Promise.resolve({ total: far, parts: {}, tookMs: 1 })
        asked += 1
        return new Promise((resolve) => {
          answer = resolve
        })
      },
      close: async () => {},
    },
    reserve: { ...reserveFile(dataDir), isThere: () => true },
    log: silentLogger,
    signal: new AbortController().signal,
  })
  await guard.pass()
  // What they may still take has gone somewhere on the disk: they are counted.
  writeFileSync(join(dataDir, 'growth'), Buffer.alloc(8 * 2 ** 20, 1))
  while (asked === 0 || left.length === 0) await guard.pass()
  expect([left[0], asked]).toEqual(['over its limit', 1])
  answer({ total: far, parts: {}, tookMs: 15_000 })
  while (!left.includes('a million names')) await guard.pass()
})
