import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startControlPlane } from '../../tools/oracle/index.js'
import { type CorralProcess, startCorral } from './corral-process.js'
import { ageMs } from './memory.js'

/** An API server to be measured: how to reach it, what it consists of. */
export interface ApiTarget {
  readonly name: 'embedded' | 'real'
  readonly url: string
  readonly token: string
  /** PEM. */
  readonly ca: string
  readonly kubeconfig: string
  readonly pids: readonly number[]
  /** From the start of its first process until it was ready. */
  readonly startMs: number
  readonly versions: Readonly<Record<string, string>>
  stop(): Promise<void>
}

export interface EmbeddedTarget extends ApiTarget {
  kill(): Promise<void>
}

interface ApiServerReady {
  url: string
  kubeconfig: string
  token: string
  pid: number
}

/** `corral apiserver` from the bundle: SQLite with full durability, TLS on loopback. */
export async function startEmbedded(dataDir: string, nodeFlags: readonly string[] = []): Promise<EmbeddedTarget> {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const args = ['apiserver', '--data-dir', dataDir, '--api-port', '0', '--log-level', 'warn']
  const running: CorralProcess<ApiServerReady> = await startCorral(args, dataDir, { nodeFlags })
  const { url, token, kubeconfig } = running.ready
  return {
    name: 'embedded',
    url,
    token,
    kubeconfig,
    ca: readFileSync(join(dataDir, 'tls', 'ca.crt'), 'utf8'),
    pids: [running.pid],
    startMs: running.startMs,
    versions: {},
    stop: () => running.stop(),
    kill: () => running.kill(),
  }
}

/** kube-apiserver and etcd, as `tools/oracle` builds and starts them. */
export async function startReal(options: { withControllerManager?: boolean } = {}): Promise<ApiTarget> {
  const plane = await startControlPlane({ withControllerManager: options.withControllerManager ?? false })
  const { etcd = 0, 'kube-apiserver': apiserver = 0 } = plane.pids
  return {
    name: 'real',
    url: plane.url,
    token: plane.token,
    ca: plane.ca,
    kubeconfig: plane.kubeconfig,
    pids: [etcd, apiserver],
    startMs: ageMs(etcd),
    versions: Object.fromEntries(
      Object.values(plane.binaries).map(({ name, version, sha256 }) => [name, `${version} sha256:${sha256}`]),
    ),
    stop: () => plane.stop(),
  }
}
