import { existsSync } from 'node:fs'
import { bubblewrapIsolation } from '@corral/node'
import { isFullSize } from '@corral/testing'
import { describe, expect, it } from 'vitest'
import { machineFiles } from '../../packages/node/src/cradle/server/scarce-watch.js'
import { hasBubblewrap } from '../../packages/node/src/isolation/workbench.test-suite.js'
import { isReady, nodeUnderTest } from '../node/node-under-test.js'

/** Where the machine has so many that no pod can take half of them, there is nothing to see. */
const most = 5_000_000
const { all } = machineFiles()
const canRun =
  hasBubblewrap && process.getuid?.() === 0 && existsSync('/usr/bin/python3') && isFullSize && all > 100 && all < most
const guardMs = 240_000

/** Opens `files` in all, by processes of which each has as many as it may, and keeps them. */
const take = (files: number): string => `exec python3 -c '
import os, resource, time
each = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 100
resource.setrlimit(resource.RLIMIT_NOFILE, (each + 100, each + 100))
for _ in range(${files} // each + 1):
    if os.fork() == 0:
        kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(min(each, ${files}))]
        time.sleep(600)
time.sleep(600)'`

describe.skipIf(!canRun)('open files of the machine (bubblewrap, root, Python, full size)', () => {
  it(
    'taken by one pod are given back, and it is told so; one with a thousand keeps them',
    async () => {
      await using node = await nodeUnderTest((dataDir) => bubblewrapIsolation({ dataDir }))
      const running = (script: string) => ({
        containers: [{ name: 'main', image: 'busybox', command: ['sh', '-c', `(${script}) & exec sleep 600`] }],
      })
      const reasons = async (name: string): Promise<string[]> => (await node.events(name)).map(({ reason }) => reason)
      await node.create('modest', running(take(1000)))
      await node.until('modest', isReady)
      await node.create('taker', running(take(Math.ceil(all * 0.6))))
      await expect.poll(() => reasons('taker'), { timeout: guardMs }).toContain('FilesTaken')
      await expect.poll(() => machineFiles().used * 2 < all, { timeout: guardMs }).toBe(true)
      expect(await reasons('modest')).not.toContain('FilesTaken')
      const { stdout } = await node.run('modest', ['sh', '-c', 'ps -e -o args= | grep -c "^python3"'])
      expect(Number(stdout)).toBeGreaterThan(0)
      expect((await node.until('taker', isReady)).status?.phase).toBe('Running')
    },
    guardMs,
  )
})
