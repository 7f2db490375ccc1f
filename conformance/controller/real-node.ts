/**
 * The proof of concept on a real Kubernetes with a real node: our manager, kubelet, containerd and runc, everything asked
 * with kubectl. `npm run conformance:real-node`; without root or Debian's packages one line says what is missing.
 */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { findKubectl } from '@corral/testing'
import { type ControlPlane, findGo, nodeObstacles, startControlPlane, startRealNode } from '../../tools/oracle/index.js'
import { installOurManager } from './harness/our-manager.js'
import { proofOfConcept, type Step } from './harness/proof-of-concept.js'
import { runnerImage } from './harness/runner-image.js'

const resultsDirectory = join(import.meta.dirname, '../results')

// An exit ends every program that was started, and with the node's first process everything on the node.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
process.exitCode = await main()

interface Result {
  readonly title: string
  readonly passed: boolean
  readonly ms: number
  readonly note: string
}

/** Every step in turn, what it took, and 1 when one failed or something is left behind. */
async function main(): Promise<number> {
  const missing = nodeObstacles()
  if (!(await findGo())) missing.push('Go is not installed')
  if (!findKubectl()) missing.push('kubectl is not installed')
  if (missing.length > 0) {
    process.stderr.write(`conformance: no real node here: ${missing.join('; ')}; skipped\n`)
    return 0
  }
  // Clusters that guard owner references are the strictest judge of our permissions.
  const plane = await startControlPlane({
    apiserverFlags: ['--enable-admission-plugins=OwnerReferencesPermissionEnforcement'],
  })
  try {
    const node = await startRealNode({ plane, images: async (busybox) => [await runnerImage(busybox)] })
    const steps = await withManager(plane).catch(async (error: unknown) => {
      await node.stop()
      throw error
    })
    const left = await node.stop()
    const end = told({
      title: 'nothing is left of the node: no process, mount, cgroup, interface or namespace',
      passed: left.length === 0,
      ms: 0,
      note: left.join('; '),
    })
    const kept = [...steps, end]
    writeResults({ node: process.version, facts: node.facts, results: kept })
    return kept.every(({ passed }) => passed) ? 0 : 1
  } finally {
    cpSync(join(plane.directory, 'logs'), join(resultsDirectory, 'logs-real-node'), { recursive: true })
    await plane.stop()
  }
}

async function withManager(plane: ControlPlane): Promise<Result[]> {
  const client = kubeClientFromConfig(await loadKubeConfig({ path: plane.kubeconfig }))
  try {
    const startManager = await installOurManager(plane, client)
    const manager = await startManager([])
    try {
      const results: Result[] = []
      // Each step builds on those before it, so the first failure ends the row.
      for (const step of proofOfConcept({ kubeconfig: plane.kubeconfig, directory: plane.directory }))
        if (results.every(({ passed }) => passed)) results.push(told(await take(step)))
      return results
    } finally {
      await manager.stop()
    }
  } finally {
    await client.close()
  }
}

async function take({ title, run }: Step): Promise<Result> {
  const startedMs = Date.now()
  const [passed, note] = await run().then(
    (said) => [true, said ?? ''] as const,
    (error: unknown) => [false, (error as Error).message] as const,
  )
  return { title, passed, ms: Date.now() - startedMs, note }
}

function told(result: Result): Result {
  const { title, passed, ms, note } = result
  process.stdout.write(`${passed ? 'yes' : 'NO '} ${title} (${ms} ms)${note ? `: ${note}` : ''}\n`)
  return result
}

function writeResults(content: object): void {
  mkdirSync(resultsDirectory, { recursive: true })
  const name = `real-node-${new Date().toISOString().replaceAll(':', '-')}.json`
  writeFileSync(join(resultsDirectory, name), `${JSON.stringify(content, null, 1)}\n`)
}
