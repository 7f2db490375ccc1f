import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { SandboxWarmPools } from '@corral/resources'
import { part, readBenchOptions } from './common/bench-options.js'
import { startCorral } from './common/corral-process.js'
import { Recorder } from './common/result-file.js'
import { median } from './common/samples.js'
import { withScratch } from './common/scratch.js'
import { until } from './common/until.js'
import { followUpStartsMs } from './follow-ups.js'
import { makeRepository } from './task-requests.js'

const places = [
  { name: 'held', where: 'on a held sandbox', holdSeconds: 600, limitMs: 300 },
  { name: 'new', where: 'on a new sandbox', holdSeconds: 0, limitMs: 1000 },
] as const

/** From a message to an ended task until its agent runs: beside a small repository, and beside one of 50 MB. */
async function main(): Promise<void> {
  const options = readBenchOptions()
  const recorder = new Recorder('follow-ups', options)
  await withScratch(async (directory) => {
    const dataDir = join(directory, 'data')
    mkdirSync(dataDir, { recursive: true, mode: 0o711 })
    const flags = ['--port', '0', '--api-port', '0', '--agent', 'command']
    const platform = await startCorral<{ url: string; token: string; kubeconfig: string }>(
      ['up', '--data-dir', dataDir, ...flags],
      dataDir,
    )
    const beforeEach = (): Promise<void> => warmSandboxesReady(platform.ready.kubeconfig)
    const rounds = options.isFull ? 30 : 7
    const small = makeRepository(join(directory, 'small'))
    const large = makeRepository(join(directory, 'large'))
    fill(large)
    try {
      for (const [size, repository] of Object.entries({ 'small repository': small, 'repository of 50 MB': large }))
        for (const { name, where, holdSeconds, limitMs } of places)
          await part(options, name, async () => {
            const startsMs = await followUpStartsMs(platform.ready, repository, { rounds, holdSeconds, beforeEach })
            recorder.samples(`${where}, ${size} ms`, startsMs)
            recorder.row({
              measure: `a message until its agent runs, ${where}, ${size}, p50`,
              unit: 'ms',
              values: { corral: median(startsMs) },
              required: `< ${limitMs}`,
              isMet: median(startsMs) < limitMs,
            })
          })
    } finally {
      await platform.stop()
    }
  })
  recorder.finish()
}

/** 500 files of 100 kB that do not compress. */
function fill(repository: string): void {
  for (let index = 0; index < 500; index += 1) {
    const folder = join(repository, `part-${index % 25}`)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `${index}.bin`), randomBytes(100_000))
  }
  const identity = ['-c', 'user.name=Bench', '-c', 'user.email=bench@example.com']
  for (const args of [
    ['add', '.'],
    ['commit', '--quiet', '-m', 'fill'],
  ])
    execFileSync('git', [...identity, ...args], { cwd: repository, stdio: 'ignore' })
}

async function warmSandboxesReady(kubeconfig: string): Promise<void> {
  const client = kubeClientFromConfig(await loadKubeConfig({ path: kubeconfig }))
  try {
    await until('two warm sandboxes', async () => {
      const pool = await client.get(SandboxWarmPools, { name: 'default', namespace: 'corral' })
      return (pool.status?.readyReplicas ?? 0) >= 2
    })
  } finally {
    await client.close()
  }
}

await main()
