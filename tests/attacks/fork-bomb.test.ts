import { existsSync } from 'node:fs'
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

/** How many pods of a node the kernel has stopped. */
function stoppedPods(dataDir: string): number {
  const groups = new StateFiles(join(dataDir, 'cradle')).groups()
  if (!groups) return 0
  const all = new Cgroup(groups, '')
  return all.children().filter((name) => all.child(name).isFrozen()).length
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
      for (const name of ['victim', 'greedy']) await node.until(name, isReady)
      const told = async (name: string): Promise<string[]> => (await node.events(name)).map(({ reason }) => reason)
      await expect.poll(() => told('bomb'), { timeout: guardMs }).toContain('ForksRefused')
      await expect.poll(() => stoppedPods(node.dataDir), { timeout: guardMs, interval: 20 }).toBe(1)
      expect(await node.run('victim', ['echo', 'fine'])).toMatchObject({ stdout: 'fine\n' })
      expect(await told('greedy')).not.toContain('ForksRefused')
      await node.client.delete(Pods, { namespace: 'default', name: 'bomb' })
      await node.untilGone('bomb')
    },
    guardMs,
  )
})
