import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openWorkbench, type Workbench } from '../../isolation/workbench.test-suite.js'

const guardMs = 240_000

describe('a cradle that has stopped answering', () => {
  let bench: Workbench
  let pid: number
  beforeEach(async () => {
    bench = openWorkbench('process')
    await bench.start('exec sleep 600')
    pid = Number(readFileSync(join(bench.dataDir, 'cradle', 'cradle.pid'), 'utf8'))
    process.kill(pid, 'SIGSTOP')
  }, guardMs)
  afterEach(async () => {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // Ended by the test.
    }
    // The next cradle of the data directory removes the control groups of the one that was killed.
    const next = bench.reopen()
    await next.adopt()
    await next.close({ endPods: true })
    await bench[Symbol.asyncDispose]()
  }, guardMs)

  it(
    'does not keep the platform from ending, and keeps its pods',
    async () => {
      await bench.isolation.close({ endPods: false })
      expect(() => process.kill(pid, 0)).not.toThrow()
    },
    guardMs,
  )

  it(
    'is killed where its pods are to end',
    async () => {
      await bench.isolation.close({ endPods: true })
      await expect.poll(() => isRunning(pid), { timeout: guardMs }).toBe(false)
    },
    guardMs,
  )
})

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
