import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '@corral/testing'
import { describe, expect, it } from 'vitest'
import { startBusyLoops } from '../../scripts/busy-loops.js'

const root = join(import.meta.dirname, '../..')
const tsx = join(root, 'node_modules/.bin/tsx')
const script = join(root, 'scripts/beside-load.ts')
const runs = (pid: number): boolean => existsSync(`/proc/${pid}`)

describe.skipIf(process.platform !== 'linux')('busy loops (Linux only)', () => {
  it('run until they are disposed of', async () => {
    const loops = await startBusyLoops(2)
    expect(loops.pids.filter(runs)).toHaveLength(2)
    await loops[Symbol.asyncDispose]()
    expect(loops.pids.filter(runs)).toEqual([])
  })

  it('end by themselves when the run they belong to is killed', async () => {
    const run = spawn(tsx, [script, '1', 'sh', '-c', 'echo started; exec sleep 600'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    await once(run.stdout, 'data')
    const family = descendants(run.pid ?? 0)
    expect(family.length).toBeGreaterThanOrEqual(3)
    for (const pid of family.filter((each) => commandOf(each).includes('beside-load'))) process.kill(pid, 'SIGKILL')
    const loops = family.filter((pid) => commandOf(pid).includes('process.ppid'))
    await waitUntil('the loops have ended', () => !loops.some(runs))
    for (const pid of family.filter(runs)) process.kill(pid, 'SIGKILL')
  })

  it('end with what the command started when the run is told to stop', async () => {
    const run = spawn(tsx, [script, '1', 'sh', '-c', 'sleep 600 & echo $!; wait'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [line] = (await once(run.stdout, 'data')) as [Buffer]
    const grandchild = Number(line.toString().trim())
    expect(runs(grandchild)).toBe(true)
    const family = descendants(run.pid ?? 0)
    run.kill('SIGTERM')
    await waitUntil('nothing of it runs', () => !family.some(runs))
    expect(runs(grandchild)).toBe(false)
  })

  it('leave the exit code of the command as it is', () => {
    expect(spawnSync(tsx, [script, '1', 'sh', '-c', 'exit 7']).status).toBe(7)
    expect(spawnSync(tsx, [script, 'many', 'true'], { encoding: 'utf8' })).toMatchObject({
      status: 2,
      stderr: 'beside-load: give the number of loops and the command to run\n',
    })
  })
})

function commandOf(pid: number): string {
  return spawnSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' }).stdout.trim()
}

function descendants(pid: number): number[] {
  const { stdout } = spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' })
  return [pid, ...stdout.split('\n').filter(Boolean).map(Number).flatMap(descendants)]
}
