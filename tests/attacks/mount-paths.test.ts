import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  compiledSupervisor,
  hasBubblewrap,
  openWorkbench,
  type Variant,
  type Workbench,
} from '../../packages/node/src/isolation/workbench.test-suite.js'

const guardMs = 240_000

/** Both launchers take their options as text ended by NUL; the compiled one with a letter in front that says what each is. */
const variants: { variant: Variant; option: string }[] = [
  { variant: 'bubblewrap + compiled supervisor', option: 'b' },
  { variant: 'bubblewrap + Node supervisor', option: '' },
]

describe.skipIf(!hasBubblewrap || !compiledSupervisor()).each(variants)(
  'a mount path that goes on behind a NUL with options of the launcher: $variant',
  ({ variant, option }) => {
    let bench: Workbench
    let host: string
    beforeAll(() => {
      bench = openWorkbench(variant)
      host = join(bench.dataDir, 'host')
      mkdirSync(host, { mode: 0o755 })
      writeFileSync(join(host, 'file'), 'of the host', { mode: 0o644 })
    })
    afterAll(() => bench[Symbol.asyncDispose]())

    const mountedAt = (target: string) =>
      bench.start('exec sleep 600', { plan: { mounts: [{ source: host, target, readOnly: true }] } })

    it('is refused, and nothing of the host is mounted', { timeout: guardMs }, async () => {
      const words = ['/data', '--ro-bind', host, '/tmp/host']
      const started = mountedAt(words.join(`\0${option}`)).then(async (cell) => {
        return (await bench.run(cell, 'cat /tmp/host/file')).stdout
      })
      await expect(started).rejects.toThrow('must not contain NUL')
    })

    it('as a plain path is mounted', { timeout: guardMs }, async () => {
      const cell = await mountedAt('/data')
      expect(await bench.run(cell, 'cat /data/file')).toMatchObject({ stdout: 'of the host' })
    })
  },
)
