import { execFile, spawn } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { tinyRoot } from '@corral/testing'
import { progress } from './common/bench-options.js'
import type { Recorder } from './common/result-file.js'
import { median } from './common/samples.js'

const run = promisify(execFile)
const image = 'localhost/corral-bench:1'

/** A container of podman with the same files in its image: from `podman run` to the first output of the same test. */
export async function podmanStarts(
  recorder: Recorder,
  { directory, tree, test, rounds, taskMs, sandboxMs }: PodmanRun,
): Promise<void> {
  const version = await run('podman', ['--version']).catch(() => undefined)
  if (!version) return recorder.note('no row for podman: there is none on this machine')
  recorder.versions.podman = version.stdout.trim()
  const archive = tinyRoot(directory, { programs: ['sh', 'cat', 'wc'], marker: 'bench' })
  cpSync(tree, join(directory, 'tiny-root', 'deps'), { recursive: true })
  await run('tar', ['rf', archive, '-C', join(directory, 'tiny-root'), './deps'])
  await run('podman', ['import', '--quiet', archive, image])
  const times: number[] = []
  try {
    const way = await wayThatWorks()
    if (way.global.length + way.options.length > 0)
      recorder.note(`podman ${[...way.global, 'run', ...way.options].join(' ')}: without, no container starts here`)
    for (let round = -1; round < rounds; round++) {
      const ms = await firstOutputMs(test, `corral-bench-${process.pid}-${round + 1}`, way)
      if (round >= 0) times.push(ms)
      progress(`podman, round ${round + 1} of ${rounds}`)
    }
  } catch (error) {
    return recorder.note(`no row for podman: ${(error as Error).message}`)
  } finally {
    await run('podman', ['rmi', '--force', image]).catch(() => undefined)
  }
  recorder.samples('podman run → first output', times)
  recorder.row({
    measure:
      'claim of a warm sandbox with the snapshot → first output of the test, against podman run with the files in its image, p50',
    unit: 'ms',
    values: { sandbox: sandboxMs, podman: median(times) },
    ratio: sandboxMs / median(times),
    required: 'faster than the container',
    isMet: sandboxMs < median(times),
  })
  recorder.row({
    measure: 'the same of a whole task, which also brings its repository in and starts an agent',
    unit: 'ms',
    values: { task: taskMs, podman: median(times) },
    ratio: taskMs / median(times),
  })
}

interface PodmanRun {
  directory: string
  /** What set-up left, as the tasks have it. */
  tree: string
  test: string
  rounds: number
  taskMs: number
  sandboxMs: number
}

/** How podman is asked to start a container. */
interface Way {
  global: readonly string[]
  options: readonly string[]
}

/**
 * podman's own limits are above the hard ones of some machines, and crun starts nothing beside cgroups of both versions, where
 * runc does.
 */
const limits = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024']
const ways: readonly Way[] = [
  { global: [], options: [] },
  { global: [], options: limits },
  { global: ['--runtime', 'runc'], options: limits },
]

/** The first way in which a container starts on this machine. */
async function wayThatWorks(): Promise<Way> {
  const problems: string[] = []
  for (const way of ways) {
    try {
      await firstOutputMs('echo started', `corral-bench-${process.pid}-try`, way)
      return way
    } catch (error) {
      problems.push((error as Error).message)
    }
  }
  throw new Error(problems.join('; '))
}

async function firstOutputMs(test: string, name: string, way: Way): Promise<number> {
  const options = ['--name', name, '--pull', 'never', '--network', 'none', ...way.options]
  const words = [...way.global, 'run', ...options, image, 'sh', '-c', test]
  const began = performance.now()
  const child = spawn('podman', words, { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString('utf8')
  })
  try {
    return await new Promise((resolve, reject) => {
      child.stdout.once('data', () => resolve(performance.now() - began))
      child.once('error', reject)
      child.once('close', (code) => reject(new Error(`podman ended with ${code}: ${said.trim().slice(-300)}`)))
    })
  } finally {
    child.kill('SIGKILL')
    await run('podman', ['rm', '--force', '--time', '0', name]).catch(() => undefined)
  }
}
