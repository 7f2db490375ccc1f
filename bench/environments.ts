import { execFile } from 'node:child_process'
import { chownSync, lchownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { bubblewrapIsolation, type Isolation } from '@corral/node'
import { part, progress, readBenchOptions } from './common/bench-options.js'
import { Recorder } from './common/result-file.js'
import { median, percentile } from './common/samples.js'
import { withScratch } from './common/scratch.js'
import { mirrorThroughput } from './environment-mirror.js'
import { podmanStarts } from './environment-podman.js'
import { environmentTasks, testCommand } from './environment-tasks.js'

const run = promisify(execFile)
const isRoot = process.getuid?.() === 0
const ownUid = process.getuid?.() ?? 0
const firstUid = 268_000
const filesPerDirectory = 100
const target = '/home/agent/tree'

/**
 * A snapshot into a sandbox that runs, against `cp -a` of the same tree: how long, and whether that grows with the tree. Each
 * attachment is to a pod of its own and ends with a look at the tree from inside.
 */
async function main(): Promise<void> {
  const options = readBenchOptions()
  const recorder = new Recorder('environments', options)
  const sizes = [1_000, 60_000, 200_000]
  const rounds = options.isFull ? 50 : 15
  await withScratch(async (directory) => {
    const isolation = bubblewrapIsolation({ dataDir: join(directory, 'data') })
    try {
      await part(options, 'attach', () => attachments(recorder, isolation, { directory, sizes, rounds }))
    } finally {
      await isolation.close({ endPods: true })
    }
    const mirror = options.isFull ? { rounds: 7, seconds: 3 } : { rounds: 5, seconds: 1 }
    await part(options, 'mirror', () => mirrorThroughput(recorder, { directory, ...mirror }))
    const files = 60_000
    await part(options, 'tasks', async () => {
      const rounds = options.isFull ? 20 : 5
      const times = await environmentTasks(recorder, { directory, files, rounds })
      const tree = makeTree(join(directory, 'podman-tree'), files)
      await podmanStarts(recorder, { directory, tree, test: testCommand, rounds, ...times })
    })
  })
  recorder.finish()
}

async function attachments(
  recorder: Recorder,
  isolation: Isolation,
  { directory, sizes, rounds }: { directory: string; sizes: readonly number[]; rounds: number },
): Promise<void> {
  const trees = sizes.map((files) => makeTree(join(directory, `tree-${files}`), files))
  const times = sizes.map((): number[] => [])
  for (let round = -2; round < rounds; round++) {
    // In turns, so that no size has the quieter machine.
    for (const [index, source] of trees.entries()) {
      const ms = await attachOnce(isolation, directory, source, `${index}-${round + 2}`)
      if (round >= 0) times[index]?.push(ms) // the first rounds warm up code and pages
    }
    progress(`attach, round ${round + 1} of ${rounds}`)
  }
  const smallest = median(times[0] ?? [])
  for (const [index, files] of sizes.entries()) {
    const samples = times[index] ?? []
    const copyMs = await copyOnce(trees[index] ?? '', join(directory, 'copy'))
    const size = files.toLocaleString('en-US')
    recorder.samples(`attach ${size} files`, samples)
    recorder.row({
      measure: `snapshot of ${size} files into a running sandbox, p50`,
      unit: 'ms',
      values: { attach: median(samples), 'cp -a': copyMs },
      ratio: median(samples) / copyMs,
      required: '<= 20 ms',
      isMet: median(samples) <= 20,
    })
    recorder.row({
      measure: `the same, p90, against the smallest tree's`,
      unit: 'ms',
      values: { attach: percentile(samples, 0.9) },
      ratio: median(samples) / smallest,
      ...(index === 0 ? {} : { required: 'p50 <= 1.5 × the smallest', isMet: median(samples) <= 1.5 * smallest }),
    })
  }
  recorder.note('attach: from the call in the main process until the tree is mounted in the cell; cp -a once per size')
}

/** A pod that runs, the attachment alone timed. */
async function attachOnce(isolation: Isolation, directory: string, source: string, id: string): Promise<number> {
  const podUid = `bench-${id}`
  const hostUid = isRoot ? firstUid : ownUid
  const pod = join(directory, 'data', 'pods', podUid)
  mkdirSync(pod, { recursive: true })
  if (isRoot) chownSync(pod, 0, hostUid)
  const plan = { podUid, namespace: 'bench', name: podUid, podIP: '100.64.9.9', hostname: 'bench', hostUid }
  await isolation.preparePod({ ...plan, egress: [], services: [], limits: {}, directory: pod })
  const cell = await isolation.launch({
    podUid,
    container: 'main',
    attempt: 0,
    argv: ['/bin/sh', '-c', 'exec sleep 900'],
    env: {},
    workingDir: '/tmp',
    uid: 1000,
    gid: 1000,
    mounts: [],
    tmpfs: [],
    readOnlyRoot: false,
    limits: {},
    stdin: false,
    tty: false,
    logPath: join(pod, 'main.log'),
  })
  const trees = [{ source, target, directory: join(pod, 'snapshot') }]
  const began = performance.now()
  await isolation.attachSnapshot(podUid, { name: 'bench', ownerUid: isRoot ? firstUid + 1 : ownUid, trees })
  const ms = performance.now() - began
  const look = await cell.exec({
    command: ['sh', '-c', `test -O ${target}/0/0`],
    ...{ stdin: false, stdout: true, stderr: true, tty: false },
  })
  const { exitCode } = await look.exited
  if (exitCode !== 0) throw new Error(`the tree is not in the sandbox (exit ${exitCode})`)
  await isolation.releasePod(podUid)
  rmSync(pod, { recursive: true })
  return ms
}

async function copyOnce(source: string, to: string): Promise<number> {
  const began = performance.now()
  await run('cp', ['-a', source, to])
  const ms = performance.now() - began
  rmSync(to, { recursive: true })
  return ms
}

function makeTree(root: string, files: number): string {
  const give = (path: string): void => {
    if (isRoot) lchownSync(path, firstUid + 1, firstUid + 1)
  }
  progress(`a tree of ${files} files`)
  mkdirSync(root)
  give(root)
  for (let file = 0; file < files; file++) {
    const directory = join(root, String(Math.floor(file / filesPerDirectory)))
    if (file % filesPerDirectory === 0) {
      mkdirSync(directory)
      give(directory)
    }
    const path = join(directory, String(file % filesPerDirectory))
    writeFileSync(path, 'x'.repeat(2_000))
    give(path)
  }
  return root
}

await main()
