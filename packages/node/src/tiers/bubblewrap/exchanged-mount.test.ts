import { chownSync, existsSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { BindMount } from '../../isolation/isolation.js'
import { compiledSupervisor, hasBubblewrap, openWorkbench, type Variant } from '../../isolation/workbench.test-suite.js'
import { makeSubPaths } from '../../volumes/sub-paths.js'

const variants: Variant[] = ['bubblewrap + compiled supervisor', 'bubblewrap + Node supervisor']

/** A pod that owns a volume can exchange a directory for a link after it was looked at and before it is mounted. */
describe.skipIf(!hasBubblewrap || !compiledSupervisor()).each(variants)(
  'NFR-5: a subPath exchanged for a link before its mount (bubblewrap and a C compiler installed): %s',
  (variant) => {
    it('starts nothing, while the untouched one starts', async () => {
      const bench = openWorkbench(variant)
      onTestFinished(() => bench[Symbol.asyncDispose]())
      const pod = bench.pod()
      const root = join(pod.directory, 'volume')
      const outside = join(bench.dataDir, 'outside')
      for (const directory of [root, outside]) mkdirSync(directory, { recursive: true })
      writeFileSync(join(outside, 'secret'), 'host')
      if (process.getuid?.() === 0) for (const path of [root, outside]) chownSync(path, pod.hostUid, pod.hostUid)
      const source = join(root, 'x')
      const identity = makeSubPaths([{ root, relative: 'x', source, readOnly: false }], pod.hostUid).get(source) ?? ''
      const mounts: BindMount[] = [{ source, target: '/data', readOnly: false, identity }]
      await bench.isolation.preparePod(pod)
      const launch = (attempt: number) =>
        bench.isolation.launch(bench.plan(pod, 'cat /data/secret > /data/stolen; exit 0', { attempt, mounts }))

      await (await launch(0)).exited
      renameSync(source, join(root, 'y'))
      symlinkSync(outside, source)
      await expect(launch(1)).rejects.toMatchObject({ code: 'StartFailed', message: expect.stringContaining('/data') })
      expect(existsSync(join(root, 'y', 'stolen'))).toBe(true)
      expect(existsSync(join(outside, 'stolen'))).toBe(false)
    })
  },
)
