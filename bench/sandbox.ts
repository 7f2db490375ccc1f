import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { Events, type Pod, Pods } from '@corral/resources'
import { isPartial, progress, readBenchOptions } from './common/bench-options.js'
import { type CorralProcess, startCorral } from './common/corral-process.js'
import { Recorder } from './common/result-file.js'
import { median, percentile } from './common/samples.js'
import { withScratch } from './common/scratch.js'
import { until } from './common/until.js'
import { makeRepository, postTasks } from './task-requests.js'

interface PlatformReady {
  url: string
  token: string
  kubeconfig: string
  isolation: string
}

const namespace = 'default'
/** Longer than the longest pauses of a pod that is stopped for its forks, so that the moments between them count. */
const spanMs = 30_000

/** What one sandbox can try to take from the others, each in a pod of its own; all of them at once. */
const attacks: Record<string, string> = {
  // Half-open connections to the broker, as many as descriptors allow, opened again as they are closed.
  connections: `exec node -e '
    const net = require("net"); let open = 0
    const more = () => { while (open < 3000) { open++; const s = net.connect(8787, "corral-broker")
      s.on("error", () => {}); s.on("close", () => { open--; setTimeout(more, 50) }) } }
    more(); setInterval(() => {}, 1000)'`,
  forks: 'bomb() { bomb | bomb & }; while :; do bomb 2>/dev/null; sleep 0.2; done',
  disk: 'cd /workspace; while :; do dd if=/dev/zero of=big bs=1M count=400 conv=fsync 2>/dev/null; echo hit; rm -f big; done',
  memory: `while :; do node -e 'const kept = []; for (;;) kept.push(Buffer.alloc(8 << 20, 1))' 2>/dev/null; echo hit; done`,
}

/** Not among the measured ones, to be asked for by name: hundreds of processes that start others and are never refused. */
const furtherAttacks: Record<string, string> = {
  churn: 'i=0; while [ $i -lt 300 ]; do (while :; do (:); done) & i=$((i+1)); done; exec sleep 100000',
}

/** Whether sandboxes under attack leave the others, and the platform, alone. */
async function main(): Promise<void> {
  const options = readBenchOptions()
  const recorder = new Recorder('sandbox', options)
  const rounds = options.isFull ? 1000 : 300
  await withScratch(async (directory) => {
    if (!isPartial(options)) await measureUp(recorder, join(directory, 'up'), options.isFull ? 15 : 7)
    const platform = await startPlatform(join(directory, 'data'))
    recorder.versions.isolation = platform.ready.isolation
    const client = kubeClientFromConfig(await loadKubeConfig({ path: platform.ready.kubeconfig }))
    const posts = { repository: makeRepository(directory), ratePerSecond: 10, durationMs: 2_000 }
    try {
      await startPod(client, 'victim', 'sleep 100000')
      await execTimes(client, 20)
      progress('quiet')
      const quiet = await execTimes(client, rounds, spanMs)
      const quietPosts = await postTasks(platform.ready, posts)
      const processesBefore = processCount()
      const known = { ...attacks, ...furtherAttacks }
      const names = options.only.size === 0 ? Object.keys(attacks) : [...options.only]
      for (const name of names) await startPod(client, name, known[name]!)
      progress('waiting for every attack to reach its limit')
      await until('every attack has reached its limit', () => allHit(client, names, processesBefore))
      progress('under attack')
      const attacked = await execTimes(client, rounds, spanMs)
      const attackedPosts = await postTasks(platform.ready, posts)
      recorder.note(
        `the fork bomb had ${processCount() - processesBefore} processes; the others had reached their limits`,
      )
      recorder.samples('exec quiet ms', quiet)
      recorder.samples('exec under attack ms', attacked)
      recorder.samples('POST /tasks quiet ms', quietPosts)
      recorder.samples('POST /tasks under attack ms', attackedPosts)
      const p99 = { attacked: percentile(attacked, 0.99), quiet: percentile(quiet, 0.99) }
      recorder.row({
        measure: '`exec` in another sandbox under connection flood, fork bomb, disk and memory attacks at once, p99',
        unit: 'ms',
        values: p99,
        ratio: p99.attacked / p99.quiet,
        required: '<= 3 × quiet',
        isMet: p99.attacked <= 3 * p99.quiet,
      })
      for (const [name, share] of [
        ['p50', 0.5],
        ['longest', 1],
      ] as const) {
        const values = { attacked: percentile(attacked, share), quiet: percentile(quiet, share) }
        const measure = `\`exec\` in another sandbox, the same, ${name}`
        recorder.row({ measure, unit: 'ms', values, ratio: values.attacked / values.quiet })
      }
      recorder.row({
        measure: '`POST /tasks` meanwhile, p99',
        unit: 'ms',
        values: { attacked: percentile(attackedPosts, 0.99), quiet: percentile(quietPosts, 0.99) },
        required: 'answers',
        isMet: attackedPosts.length === 20,
      })
    } finally {
      await client.close()
      const before = performance.now()
      await platform.stop()
      const stopMs = performance.now() - before
      recorder.row({
        measure: 'SIGTERM to the end of main, under attack',
        unit: 'ms',
        values: { corral: stopMs },
        required: '< 5000',
        isMet: stopMs < 5000,
      })
    }
  })
  recorder.finish()
}

/** From the start of `./corral` to ready: on an empty data directory once in each round, then on that of the round. */
async function measureUp(recorder: Recorder, directory: string, rounds: number): Promise<void> {
  const times = { empty: [] as number[], existing: [] as number[] }
  for (let round = 0; round < rounds; round += 1) {
    progress(`up, round ${round + 1} of ${rounds}`)
    for (const samples of [times.empty, times.existing]) {
      const platform = await startPlatform(join(directory, String(round)), { viaLauncher: true })
      samples.push(platform.startMs)
      await platform.stop()
    }
  }
  recorder.samples('up empty ms', times.empty)
  recorder.samples('up existing ms', times.existing)
  for (const [name, samples] of [
    ['empty data directory', times.empty],
    ['existing data', times.existing],
  ] as const) {
    const corral = median(samples)
    recorder.row({
      measure: `\`./corral up\` to ready, launcher included, ${name}, p50`,
      unit: 'ms',
      values: { corral },
      required: '< 800',
      isMet: corral < 800,
    })
  }
}

function startPlatform(
  dataDir: string,
  options: { viaLauncher?: boolean } = {},
): Promise<CorralProcess<PlatformReady>> {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const flags = ['--port', '0', '--api-port', '0', '--agent', 'command', '--max-tasks', '0', '--warm', '0']
  return startCorral(['up', '--data-dir', dataDir, ...flags], dataDir, options)
}

async function startPod(client: KubeClient, name: string, script: string): Promise<void> {
  const pod: Pod = {
    metadata: { name, namespace },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'main',
          image: 'busybox:1',
          command: ['/bin/bash', '-c', script],
          resources: { requests: { cpu: '250m' }, limits: { memory: '1Gi' } },
          volumeMounts: [{ name: 'workspace', mountPath: '/workspace' }],
        },
      ],
      volumes: [{ name: 'workspace', emptyDir: {} }],
    },
  }
  await client.create(Pods, pod)
  await until(`pod ${name} runs`, async () => {
    const { status } = await client.get(Pods, { namespace, name })
    return status?.phase === 'Running'
  })
}

/** Whether connections were refused, memory and disk used up at least once, and the bomb has most of what it may have. */
async function allHit(client: KubeClient, names: readonly string[], processesBefore: number): Promise<boolean> {
  const isRefused = async (): Promise<boolean> => {
    const { items } = await client.list(Events, { namespace })
    return items.some((each) => each.involvedObject.name === 'connections' && each.reason === 'ConnectionsRefused')
  }
  const hits: Record<string, () => Promise<boolean>> = {
    connections: isRefused,
    forks: async () => processCount() - processesBefore > 500,
    churn: async () => processCount() - processesBefore > 250,
    disk: () => hasHit(client, 'disk'),
    memory: () => hasHit(client, 'memory'),
  }
  for (const name of names) if (!(await hits[name]!())) return false
  return true
}

async function hasHit(client: KubeClient, name: string): Promise<boolean> {
  for await (const chunk of client.logs({ namespace, name }, {})) if (Buffer.from(chunk).includes('hit')) return true
  return false
}

const processCount = (): number => readdirSync('/proc').filter((name) => /^\d+$/.test(name)).length

/** How long a command in the victim takes, through the API as kubectl does it; as many as `rounds`, and for `spanMs`. */
async function execTimes(client: KubeClient, rounds: number, spanMs = 0): Promise<number[]> {
  const times: number[] = []
  const begin = performance.now()
  for (let round = 0; round < rounds || performance.now() - begin < spanMs; round += 1) {
    const before = performance.now()
    const child = await client.exec({ namespace, name: 'victim' }, { command: ['true'] })
    const { exitCode } = await child.exited
    if (exitCode !== 0) throw new Error(`exec ended with ${exitCode}`)
    times.push(performance.now() - before)
  }
  return times
}

await main()
