import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Cell } from '../../packages/node/src/isolation/isolation.js'
import { hasBubblewrap, openWorkbench, type Workbench } from '../../packages/node/src/isolation/workbench.test-suite.js'

const guardMs = 240_000

/** Where no compiler is, the supervisor is a Node process that the code of its pod can take over: what it says is input. */
describe.skipIf(!hasBubblewrap)('a Node supervisor that its pod has taken over', () => {
  let bench: Workbench
  let honest: Cell
  beforeAll(async () => {
    const supervisorEntry = fileURLToPath(new URL('taken-over-supervisor.ts', import.meta.url))
    bench = openWorkbench('bubblewrap + Node supervisor', { supervisorEntry })
    honest = await bench.start('exec sleep 600')
  }, guardMs)
  afterAll(() => bench[Symbol.asyncDispose]())

  /** A cell whose supervisor says these words. */
  async function startSaying(words: string): Promise<Cell> {
    const pod = bench.pod()
    const tmp = join(pod.directory, 'tmp')
    mkdirSync(tmp)
    writeFileSync(join(tmp, 'says'), words)
    await bench.isolation.preparePod(pod)
    return await bench.isolation.launch(bench.plan(pod, 'exec sleep 600'))
  }

  const othersGoOn = async (): Promise<void> =>
    expect(await bench.run(honest, 'echo here')).toMatchObject({ stdout: 'here\n', exitCode: 0 })

  it.each(['a frame of 4 GiB', 'a start without a number', 'an end of three bytes'])(
    'ends its own cell, and not those of others, with %s to the cradle',
    { timeout: guardMs },
    async (words) => {
      const cell = await startSaying(`control ${words}`).catch((error: Error) => error)
      if (cell instanceof Error) expect(cell.message).toBe('what the supervisor said is no frame')
      else expect((await cell.exited).exitCode).not.toBe(0)
      await othersGoOn()
    },
  )

  it('does not end the platform with a frame of 4 GiB as the answer to a question', { timeout: guardMs }, async () => {
    const cell = await startSaying('listener a frame of 4 GiB')
    const lost = { code: 'CellLost' }
    await expect(cell.dial(80)).rejects.toMatchObject(lost)
    await expect(cell.signal('SIGUSR2')).rejects.toMatchObject(lost)
    await expect(bench.run(cell, 'true')).rejects.toMatchObject(lost)
    await othersGoOn()
  })
})
