import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openWorkbench, type Workbench } from '../../isolation/workbench.test-suite.js'

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
})
