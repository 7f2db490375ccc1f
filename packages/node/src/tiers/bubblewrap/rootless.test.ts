import { execFile } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { describe, expect, it, onTestFinished } from 'vitest'
import { pidsOfUid } from '../../cradle/server/process-table.js'
import type { ProbeReport } from '../../isolation/isolation.js'
import { compiledSupervisor, hasBubblewrap } from '../../isolation/workbench.test-suite.js'

const isRoot = process.getuid?.() === 0
/** Used by no pod: below the range of the probe and of pods. */
const plainUid = 199_990
const sources = fileURLToPath(new URL('../..', import.meta.url))

/** The tier as an unprivileged user gets it, in a home directory with mode 0700. */
describe.skipIf(!isRoot || !hasBubblewrap || !compiledSupervisor())(
  'bubblewrap for a user without privileges (root, bubblewrap and a C compiler needed to test it)',
  () => {
    it.each(['native', 'node'] as const)(
      'passes its probe with the %s supervisor and leaves no process',
      async (kind) => {
        const root = mkdtempSync(join(tmpdir(), 'corral-rootless-'))
        onTestFinished(() => rmSync(root, { recursive: true }))
        chmodSync(root, 0o711)
        const home = join(root, 'home')
        mkdirSync(home, { mode: 0o700 })
        chownSync(home, plainUid, plainUid)
        const bundles = [
          { entry: 'cradle-main.ts', name: 'cradle.mjs' },
          { entry: 'cradle/supervisor/node-supervisor.ts', name: 'node-supervisor.mjs' },
          { entry: 'tiers/bubblewrap/bubblewrap-isolation.ts', name: 'tiers.mjs' },
        ]
        for (const { entry, name } of bundles) {
          const shape = { bundle: true, platform: 'node', format: 'esm', target: 'node20' } as const
          const where = { entryPoints: [join(sources, entry)], outfile: join(root, name) }
          await build({ ...shape, ...where, conditions: ['corral-source'] })
        }
        copyFileSync(compiledSupervisor() ?? '', join(root, 'corral-supervisor'))
        const options = {
          dataDir: join(home, 'data'),
          cradleEntry: join(root, 'cradle.mjs'),
          supervisorPath: kind === 'native' ? join(root, 'corral-supervisor') : null,
          supervisorScript: join(root, 'node-supervisor.mjs'),
        }
        const script = `import { bubblewrapIsolation } from ${JSON.stringify(join(root, 'tiers.mjs'))}
        const isolation = bubblewrapIsolation(${JSON.stringify(options)})
        const report = await isolation.probe()
        await isolation.close({ endPods: false })
        console.log(JSON.stringify(report))`
        const identity = ['--reuid', String(plainUid), '--regid', String(plainUid), '--clear-groups']
        const command = [process.execPath, '--input-type=module', '-e', script]
        const { stdout } = await promisify(execFile)('setpriv', [...identity, ...command], {
          cwd: root,
          env: { PATH: process.env.PATH, HOME: home },
          timeout: 240_000,
        })
        const report = JSON.parse(stdout) as ProbeReport
        expect(report.checks.filter(({ passed }) => !passed)).toEqual([])
        expect(report).toMatchObject({ tier: 'bubblewrap', usable: true })
        // Snapshots come with the compiled program only; without it they are copied.
        expect(report.snapshots).toMatchObject({ copyOnWrite: kind === 'native' })
        expect(pidsOfUid(plainUid)).toEqual([])
      },
    )
  },
)
