import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cradleOf, openWorkbench, type Workbench } from '../../isolation/workbench.test-suite.js'

const guardMs = 240_000

describe('one cradle for a data directory', () => {
  let bench: Workbench
  beforeEach(() => {
    bench = openWorkbench('process')
  })
  afterEach(() => bench[Symbol.asyncDispose](), guardMs)

  it(
    'a platform killed while it starts one and its successor get the same, which ends no cell of theirs',
    async () => {
      const successor = bench.reopen()
      const pod = bench.pod()
      await Promise.all([bench.isolation.preparePod(pod), successor.adopt()])
      await successor.launch(bench.plan(pod, 'exec sleep 600'))
      const [cell] = await bench.isolation.adopt()
      expect(cell).toMatchObject({ podUid: pod.podUid, knownExit: undefined })
      await successor.close({ endPods: false })
    },
    guardMs,
  )

  it(
    'a container whose start was not on record when both died is started once more, not taken for the lost one',
    async () => {
      const pod = bench.pod()
      const plan = bench.plan(pod, 'exec sleep 600')
      await bench.isolation.preparePod(pod)
      await bench.isolation.launch(plan)
      const cradle = cradleOf(bench.dataDir)
      process.kill(cradle, 'SIGKILL')
      const successor = bench.reopen()
      expect(await successor.adopt()).toMatchObject([{ podUid: pod.podUid, knownExit: { lost: true } }])
      await successor.preparePod(pod)
      const cell = await successor.launch(plan)
      expect(cell.knownExit).toBeUndefined()
      expect(await bench.run(cell, 'echo here')).toMatchObject({ stdout: 'here\n' })
      await successor.close({ endPods: true })
    },
    guardMs,
  )
})
