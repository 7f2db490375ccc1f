import { isFullSize } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type End, type FaultBench, openFaultBench, problemsOf, type Stage, stages } from './fault-bench.js'

// Real processes on a machine that may be busy with other tests.
vi.setConfig({ testTimeout: 1_800_000, hookTimeout: 600_000 })

const mayMount = process.getuid?.() === 0 && process.platform === 'linux'
const cells: readonly Stage[] = isFullSize ? stages : ['pushing']

/** What a user gets whose task was at this stage: never less than was on disk, and a name for what went wrong. */
function possibleEnds(stage: Stage): End[] {
  const hasWork = ['agent running', 'collecting', 'pushing'].includes(stage)
  return hasWork
    ? ['all of the work', 'what was on disk']
    : ['all of the work', 'what was on disk', 'a full disk by name']
}

/** The row of the fault matrix that needs a disk of its own: files of others take all of it, and go away again. */
describe.skipIf(!mayMount)(`a disk that runs full${mayMount ? '' : ' (only root may mount one)'}`, () => {
  let bench: FaultBench
  beforeAll(async () => {
    bench = await openFaultBench({ diskMebibytes: 320 })
  })
  afterAll(() => bench?.[Symbol.asyncDispose]())

  it.each(cells)('under a task that is %s', async (stage) => {
    const id = await bench.taskAt(stage)
    await bench.strike('disk full', id)
    expect((await bench.platform.api.request('GET', `/tasks/${id}`)).status).toBe(200)
    await bench.release()
    expect(await problemsOf(bench, await bench.platform.api.untilEnded(id), possibleEnds(stage))).toEqual([])

    // Room is noticed within moments; until then new tasks are refused.
    const isRoomy = async (): Promise<string> => (await bench.platform.api.request('GET', '/readyz')).text
    await expect.poll(isRoomy, { timeout: 120_000 }).toBe('ok')
    const fresh = await bench.platform.api.untilEnded(await bench.create())
    expect(await problemsOf(bench, fresh, ['all of the work'])).toEqual([])
    await bench.untilHealthy()
  })
})
