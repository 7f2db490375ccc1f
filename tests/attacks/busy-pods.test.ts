import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bubblewrapIsolation } from '@corral/node'
import { describe, expect, it } from 'vitest'
import { parseCgroupMounts } from '../../packages/node/src/cradle/server/cgroups.js'
import { hasBubblewrap } from '../../packages/node/src/isolation/workbench.test-suite.js'
import { isReady, nodeUnderTest } from '../node/node-under-test.js'

const mounts = parseCgroupMounts(readFileSync('/proc/self/mounts', 'utf8'))
/** The tree whose groups have a weight. */
const cpu =
  mounts.find(({ type, options }) => type === 'cgroup' && options.includes('cpu')) ??
  mounts.find(({ type }) => type === 'cgroup2')
const canRun =
  hasBubblewrap && process.getuid?.() === 0 && cpu !== undefined && mounts.some(({ type }) => type === 'cgroup2')
const guardMs = 240_000

/** The directory of the pod's group, found by a process of it whose arguments hold `mark`. */
function podGroup(mark: string): string {
  const pid = readdirSync('/proc').find((name) => /^\d+$/.test(name) && hasMark(name, mark))
  if (pid === undefined) throw new Error(`no process with ${mark}`)
  const own = readFileSync(`/proc/${pid}/cgroup`, 'utf8').split('\n')
  const line = own.find((each) =>
    cpu?.type === 'cgroup2' ? each.startsWith('0::') : /^\d+:(.*,)?cpu(,.*)?:/.test(each),
  )
  return join(cpu?.path ?? '', line?.split(':').slice(2).join(':') ?? '', '..')
}

function hasMark(pid: string, mark: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(mark)
  } catch {
    return false // It ended meanwhile.
  }
}

describe.skipIf(!canRun)('a pod that uses more of the processor than it asked for (bubblewrap, root)', () => {
  it(
    'runs behind one that does not, until it is quiet; then it has its weight again',
    async () => {
      await using node = await nodeUnderTest((dataDir) => bubblewrapIsolation({ dataDir }))
      const running = (script: string, mark: string) => ({
        containers: [
          {
            name: 'main',
            image: 'busybox',
            command: ['sh', '-c', script, mark],
          },
        ],
      })
      const marks = { quiet: `quiet-${process.pid}`, busy: `busy-${process.pid}` }
      await node.create('quiet', running('while :; do sleep 60; done', marks.quiet))
      await node.create(
        'busy',
        running(
          'for each in 1 2; do (while [ ! -e /tmp/enough ]; do :; done) & done; while :; do sleep 60; done',
          marks.busy,
        ),
      )
      await node.until('quiet', isReady)
      await node.until('busy', isReady)
      const groups = { quiet: podGroup(marks.quiet), busy: podGroup(marks.busy) }
      const weightFile = cpu?.type === 'cgroup2' ? 'cpu.weight' : 'cpu.shares'
      const read = (group: string, file: string): string => readFileSync(join(group, file), 'utf8').trim()
      const isBehind = (): string => read(groups.busy, 'cpu.idle')
      await expect.poll(isBehind, { timeout: guardMs }).toBe('1')
      await expect.poll(() => read(groups.quiet, 'cpu.idle'), { timeout: guardMs }).toBe('0')
      await node.run('busy', ['touch', '/tmp/enough'])
      await expect.poll(isBehind, { timeout: guardMs }).toBe('0')
      const weights = (): string[] => [groups.busy, groups.quiet].map((group) => read(group, weightFile))
      const weight = cpu?.type === 'cgroup2' ? '4' : '102'
      await expect.poll(weights, { timeout: guardMs }).toEqual([weight, weight])
    },
    2 * guardMs,
  )
})
