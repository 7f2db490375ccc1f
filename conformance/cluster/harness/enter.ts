import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { findKubectl } from '@corral/testing'
import { ensureOracle, findGo, nodeObstacles } from '../../../tools/oracle/index.js'
import {
  ensureNodePackages,
  ensurePacketFilter,
  ensurePrometheus,
  ensureShellcheck,
} from '../../../tools/oracle/node-packages.js'

const root = join(import.meta.dirname, '../../..')
const tsxLoader = createRequire(import.meta.url).resolve('tsx')

/**
 * Builds and fetches what a cluster needs, then runs a script in network and process namespaces of its own, from which
 * nothing outside this machine is reached and with which everything in them goes. Answers its exit code. With `--built`
 * nothing is built or fetched: what is there is used.
 */
export async function enterCluster(script: string, args: readonly string[]): Promise<number> {
  const missing = nodeObstacles()
  if (!(await findGo())) missing.push('Go is not installed')
  if (!findKubectl()) missing.push('kubectl is not installed')
  if (missing.length > 0) {
    process.stderr.write(`cluster: there can be none here: ${missing.join('; ')}; nothing was run\n`)
    return 0
  }
  const isBuilt = args.includes('--built')
  const noGvisor = isBuilt || args.includes('--without-gvisor') ? undefined : await gvisorObstacle()
  if (!isBuilt) {
    await ensureOracle([
      ...(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet', 'kube-proxy'] as const),
      ...(['coredns', 'helm', 'agent-sandbox-controller'] as const),
    ])
    await ensureNodePackages()
    await ensurePacketFilter()
    await ensurePrometheus()
    await ensureShellcheck()
    const images = await ended('npm', ['run', '--silent', 'images', '--', '--languages', '--agent', 'claude'])
    if (images !== 0) return images
  }
  const inside = [process.execPath, '--conditions=corral-source', '--import', tsxLoader, script]
  const own = ['--net', '--pid', '--fork', '--kill-child', '--mount-proc']
  const more = noGvisor === undefined ? [] : ['--without-gvisor', noGvisor]
  return ended('unshare', [...own, ...inside, ...more, ...args])
}

/** Why there is no gVisor here; undefined where there is. */
async function gvisorObstacle(): Promise<string | undefined> {
  const runtime = ['containerd', 'ctr', 'containerd-shim-runc-v2', 'runsc', 'containerd-shim-runsc-v1'] as const
  return ensureOracle(runtime).then(
    () => undefined,
    (error: unknown) => `gVisor cannot be built here: ${(error as Error).message.slice(0, 300)}`,
  )
}

function ended(program: string, args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill('SIGKILL'))
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
}
