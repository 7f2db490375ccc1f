import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'
import { expect, it } from 'vitest'
import {
  compiledSupervisor,
  hasBubblewrap,
  openWorkbench,
  type Variant,
} from '../../packages/node/src/isolation/workbench.test-suite.js'

const variants: { variant: Variant; isHere: boolean }[] = [
  { variant: 'bubblewrap + compiled supervisor', isHere: hasBubblewrap && compiledSupervisor() !== undefined },
  { variant: 'bubblewrap + Node supervisor', isHere: hasBubblewrap },
]
const isRoot = process.getuid?.() === 0

/** The first process of a container that is just Node: it reaps what it started itself and nothing else. */
const firstProcess = (isolation: string): string => `
  import { spawn } from 'node:child_process'
  import { once } from 'node:events'
  import { readdirSync, readFileSync } from 'node:fs'
  import { bubblewrapIsolation } from './tiers/bubblewrap/bubblewrap-isolation.js'
  const { options, pod, plan, leaks } = JSON.parse(process.argv[2])
  const states = () => readdirSync('/proc').filter((name) => /^\\d+$/.test(name)).flatMap((name) => {
    try { return [readFileSync('/proc/' + name + '/stat', 'utf8')] } catch { return [] }
  })
  if (leaks) await once(spawn('/bin/sh', ['-c', 'sleep 0.1 & exit 0'], { stdio: 'ignore' }), 'exit')
  else {
    const isolation = ${isolation}(options)
    await isolation.preparePod(pod)
    const cell = await isolation.launch(plan)
    const side = await cell.exec({ command: ['/bin/sh', '-c', 'setsid sleep 600 & exec sleep 600'], stdin: false, stdout: true, stderr: true, tty: false })
    void side.exited.catch(() => undefined)
    await isolation.close({ endPods: true })
  }
  // Everything but this process has ended once no living one is left; what is not reaped stays.
  while (states().some((stat) => Number(stat.split(' ')[0]) !== 1 && !/\\) Z /.test(stat))) await new Promise((next) => setTimeout(next, 20))
  console.log(JSON.stringify(states().filter((stat) => /\\) Z /.test(stat)).map((stat) => stat.split(' ').slice(0, 4).join(' '))))
  process.exit()`

it.each(variants)(
  'where the first process reaps nothing, a platform that ends leaves no dead process behind ($variant; a pid namespace needs root)',
  async ({ variant, isHere }) => {
    if (!isHere || !isRoot) return
    const bench = openWorkbench(variant)
    const script = join(bench.dataDir, 'first.mjs')
    const sources = fileURLToPath(new URL('../../packages/node/src', import.meta.url))
    buildSync({
      stdin: { contents: firstProcess('bubblewrapIsolation'), resolveDir: sources, loader: 'ts' },
      outfile: script,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      conditions: ['corral-source'],
    })
    const usesNode = variant === 'bubblewrap + Node supervisor'
    const options = {
      dataDir: bench.dataDir,
      cradleEntry: join(bench.dataDir, 'cradle.mjs'),
      ...(usesNode
        ? { supervisorPath: null, supervisorScript: join(bench.dataDir, 'node-supervisor.mjs') }
        : { supervisorPath: compiledSupervisor() }),
      idleShutdownMs: 60_000,
    }
    const pod = bench.pod()
    const plan = bench.plan(pod, 'sleep 600 & exec sleep 600')
    const deadIn = (leaks: boolean): string[] => {
      const given = JSON.stringify({ options, pod, plan, leaks })
      const args = ['--pid', '--fork', '--kill-child', '--mount-proc', process.execPath, script, given]
      const run = spawnSync('unshare', args, { encoding: 'utf8', timeout: 240_000 })
      expect(run.stderr).toBe('')
      return JSON.parse(run.stdout) as string[]
    }
    try {
      // The control: an orphan that is not reaped is counted.
      expect(deadIn(true)).toHaveLength(1)
      expect(deadIn(false)).toEqual([])
    } finally {
      await bench[Symbol.asyncDispose]()
    }
  },
  300_000,
)
