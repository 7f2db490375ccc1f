import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bubblewrapIsolation } from '@corral/node'
import { Pods } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { Cgroup } from '../../packages/node/src/cradle/server/cgroups.js'
import { StateFiles } from '../../packages/node/src/cradle/server/state-files.js'
import { hasBubblewrap } from '../../packages/node/src/isolation/workbench.test-suite.js'
import { isReady, nodeUnderTest } from '../node/node-under-test.js'

const isRoot = process.getuid?.() === 0
const canFreeze = isRoot && ['', 'unified/'].some((at) => existsSync(`/sys/fs/cgroup/${at}cgroup.controllers`))
const guardMs = 240_000

/** Starts processes without end, however many are refused. */
const bomb = `exec node -e 'setInterval(() => {
  for (let i = 0; i < 50; i++) require("child_process").spawn("sleep", ["600"], { stdio: "ignore" }).on("error", () => {})
}, 5)'`
/** Takes every process it may have once, then works with what it has. */
const greedy = `i=0; while [ $i -lt 50 ]; do sleep 600 & i=$((i+1)); done; exec sleep 600`

/** How many pods of a node are stopped: all of them, by the kernel, or all processes but some, by a signal. */
function stoppedPods(dataDir: string): { whole: number; partly: number } {
  const groups = new StateFiles(join(dataDir, 'cradle')).groups()
  const all = groups && new Cgroup(groups, '')
  const pods = (all?.children() ?? []).map((name) => all!.child(name))
  return {
    whole: pods.filter((pod) => pod.isFrozen()).length,
    partly: pods.filter((pod) => pod.pids().some(isStopped)).length,
  }
}

function isStopped(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.startsWith('T') === true
  } catch {
    return false // It has ended.
  }
}

describe.skipIf(!hasBubblewrap || !canFreeze)('a fork bomb (bubblewrap, root, control groups of version 2)', () => {
  it(
    'is stopped for moments and told of, while others work and while it can still be ended; many processes alone are not',
    async () => {
      await using node = await nodeUnderTest((dataDir) => bubblewrapIsolation({ dataDir }), { pidsLimit: 64 })
      const running = (script: string) => ({
        containers: [{ name: 'main', image: 'busybox', command: ['sh', '-c', script] }],
      })
      await node.create('victim', running('exec sleep 600'))
      await node.create('greedy', running(greedy))
      await node.create('bomb', running(bomb))
      await node.create('beside', running(`(${bomb}) & exec sleep 600`))
      for (const name of ['victim', 'greedy']) await node.until(name, isReady)
      const told = async (name: string): Promise<string[]> => (await node.events(name)).map(({ reason }) => reason)
      for (const name of ['bomb', 'beside'])
        await expect.poll(() => told(name), { timeout: guardMs }).toContain('ForksRefused')
      // A main process that is the bomb is stopped in the end; one that is not goes on.
      await expect
        .poll(() => stoppedPods(node.dataDir), { timeout: guardMs, interval: 20 })
        .toEqual({ whole: 1, partly: expect.toSatisfy((pods: number) => pods >= 1) })
      expect(await node.run('victim', ['echo', 'fine'])).toMatchObject({ stdout: 'fine\n' })
      expect(await told('greedy')).not.toContain('ForksRefused')
      for (const name of ['bomb', 'beside']) {
        await node.client.delete(Pods, { namespace: 'default', name })
        await node.untilGone(name)
      }
    },
    guardMs,
  )
})
