import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pidsOfUid } from '../../packages/node/src/cradle/server/process-table.js'
import {
  compiledSupervisor,
  hasBubblewrap,
  openWorkbench,
  type Variant,
  type Workbench,
} from '../../packages/node/src/isolation/workbench.test-suite.js'

const supervisor = compiledSupervisor()
const variants: { variant: Variant; isHere: boolean }[] = [
  { variant: 'bubblewrap + compiled supervisor', isHere: hasBubblewrap && supervisor !== undefined },
  { variant: 'bubblewrap + Node supervisor', isHere: hasBubblewrap },
]

/** bubblewrap is not installed everywhere; the second row runs where no compiler is. */
describe.each(variants.filter(({ isHere }) => isHere))('a sandbox ($variant)', ({ variant }) => {
  let bench: Workbench
  beforeAll(() => {
    bench = openWorkbench(variant)
  })
  afterAll(() => bench[Symbol.asyncDispose]())

  it('goes before the platform when the machine runs out of memory, and never gets below it', async () => {
    const cell = await bench.start('exec sleep 600')
    const score = '/proc/self/oom_score_adj'
    expect((await bench.run(cell, `cat ${score}`)).stdout).toBe('900\n')
    const { stdout } = await bench.run(cell, `for n in -1000 -1 0; do echo $n > ${score}; done; cat ${score}`)
    const own = Number(readFileSync(score, 'utf8'))
    expect(Number(stdout)).toBeGreaterThanOrEqual(own)
    // Without this capability the kernel lets a process take back what it added, as far as its parent's score.
    if (hasCapability(24)) expect(stdout).toBe('900\n')
    await cell.kill()
  })

  it.skipIf(process.getuid?.() !== 0)(
    'leaves no process behind that took itself out of its group and ignores every signal (a uid of its own needs root)',
    async () => {
      const pod = bench.pod()
      await bench.isolation.preparePod(pod)
      const hide = `trap "" TERM HUP INT; while :; do sleep 1; done`
      const cell = await bench.isolation.launch(
        bench.plan(pod, `setsid sh -c '${hide}' & setsid setsid sh -c '${hide}' & exec sleep 600`),
      )
      await expect.poll(() => pidsOfUid(pod.hostUid).length).toBeGreaterThan(3)
      await cell.kill()
      await bench.isolation.releasePod(pod.podUid)
      expect(pidsOfUid(pod.hostUid)).toEqual([])
    },
  )

  it('reaches neither a command of the host nor another program by what it is given in its descriptors and arguments', async () => {
    const cell = await bench.start('exec sleep 600')
    const { stdout } = await bench.run(cell, 'for fd in /proc/[0-9]*/fd/*; do readlink $fd; done 2>/dev/null | sort -u')
    const paths = stdout.split('\n').filter((line) => line.startsWith('/') && !/^\/(dev|proc|tmp)\//.test(line))
    expect(paths.filter((path) => path.includes(bench.dataDir))).toEqual([])
    await cell.kill()
  })
})

/** Whether we have it (24 is CAP_SYS_RESOURCE); many containers do not. */
function hasCapability(number: number): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
  return ((BigInt(`0x${effective}`) >> BigInt(number)) & 1n) === 1n
}
