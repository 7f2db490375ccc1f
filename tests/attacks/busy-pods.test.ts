import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { bubblewrapIsolation } from '@corral/node'
import { describe, expect, it } from 'vitest'
import { parseCgroupMounts } from '../../packages/node/src/cradle/server/cgroups.js'
import { parseProcessors, withoutReserved } from '../../packages/node/src/cradle/server/processors.js'
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

/** A process whose arguments hold `mark`. */
function processWith(mark: string): string {
  const pid = readdirSync('/proc').find((name) => /^\d+$/.test(name) && hasMark(name, mark))
  if (pid === undefined) throw new Error(`no process with ${mark}`)
  return pid
}

/** The processors a process may run on. */
function processorsOf(pid: string): number[] {
  return parseProcessors(/^Cpus_allowed_list:\t(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '')
}

/** The directory of the pod's group, found by a process of it whose arguments hold `mark`. */
function podGroup(mark: string): string {
  const pid = processWith(mark)
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

const running = (script: string, mark: string) => ({
  containers: [{ name: 'main', image: 'busybox', command: ['sh', '-c', script, mark] }],
})

describe.skipIf(!canRun)('a pod that uses more of the processor than it asked for (bubblewrap, root)', () => {
  it(
    'runs behind one that does not, until it is quiet; then it has its weight again',
    async () => {
      await using node = await nodeUnderTest((dataDir) => bubblewrapIsolation({ dataDir }))
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

describe.skipIf(!canRun || availableParallelism() < 2)('a pod that is busy in the kernel (bubblewrap, root)', () => {
  it(
    'leaves a processor to one that works, and has all of them again when that rests',
    async () => {
      await using node = await nodeUnderTest((dataDir) => bubblewrapIsolation({ dataDir }))
      const marks = { writer: `writer-${process.pid}`, worker: `worker-${process.pid}` }
      const writes = 'while :; do dd if=/dev/zero of=/dev/null bs=1M count=2000 2> /dev/null; done'
      const counts = 'n=0; while [ ! -e /tmp/enough ]; do n=$((n + 1)); [ $((n % 9999)) -gt 0 ] || sleep 0.2; done'
      await node.create('writer', running(`(${writes}) & ${writes}`, marks.writer))
      await node.create('worker', running(`${counts}; while :; do sleep 60; done`, marks.worker))
      await node.until('writer', isReady)
      await node.until('worker', isReady)
      const all = processorsOf('self')
      const writer = processWith(marks.writer)
      await expect.poll(() => processorsOf(writer), { timeout: guardMs }).toEqual(withoutReserved(all))
      expect(processorsOf(processWith(marks.worker))).toEqual(all)
      await node.run('worker', ['touch', '/tmp/enough'])
      await expect.poll(() => processorsOf(writer), { timeout: guardMs }).toEqual(all)
    },
    2 * guardMs,
  )
})
