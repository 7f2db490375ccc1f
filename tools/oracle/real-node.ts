import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { Nodes } from '@corral/resources'
import { type EnsureOptions, ensureOracle } from './binaries.js'
import { type ImageContents, writeImage } from './container-image.js'
import type { ControlPlane } from './control-plane.js'
import { pauseImage, writeNodeFiles } from './node-files.js'
import { cgroupsLeft, hostTraces, removeCgroups, snapshotCgroups } from './node-leftovers.js'
import { ensureNodePackages, type NodePackages } from './node-packages.js'
import { freePorts, type Program, startProgram, untilReady } from './program.js'

const run = promisify(execFile)
const nodeName = 'real-node'
export const nodeBridge = 'corral-judge0'
export const podSubnet = '10.213.77.0/24'
/** The node's own, on its bridge: Pods reach it where they have a way out at all. */
export const nodeAddress = '10.213.77.1'
const forwarding = '/proc/sys/net/ipv4/ip_forward'

/** A real node of a control plane: kube-scheduler, kubelet, containerd and runc, Pods on a bridge of this machine. */
export interface RealNode {
  readonly name: string
  /** Version lines of what runs it. */
  readonly facts: Readonly<Record<string, string>>
  /** Ends everything on the node and undoes what it did to this machine. Answers what could not be undone. */
  stop(): Promise<string[]>
}

export interface RealNodeOptions extends EnsureOptions {
  plane: ControlPlane
  /** Images for Pods, besides the one every Pod needs. There is no registry. */
  images: (busybox: string) => Promise<readonly ImageContents[]>
  /** OCI archives of images besides. */
  archives?: readonly string[]
  /** Pods find Services by name: see `startClusterNetwork`. */
  isCluster?: boolean
  /** Pods may have the runtime `gvisor`. */
  hasGvisor?: boolean
}

/** Joins a node to the control plane and resolves once it is Ready. On failure nothing is left running. */
export async function startRealNode(options: RealNodeOptions): Promise<RealNode> {
  const { plane } = options
  const { isCluster = false, hasGvisor = false } = options
  const packages = hasGvisor ? await withGvisor(await ensureNodePackages(), options) : await ensureNodePackages()
  const binaries = await ensureOracle(['kube-scheduler', 'kubelet'], options)
  const directory = join(plane.directory, 'node')
  const wasForwarding = readFileSync(forwarding, 'utf8')
  const before = snapshotCgroups()
  const [kubeletPort = 0, schedulerPort = 0] = await freePorts(2)
  const { kubeconfig } = plane
  const logs = join(plane.directory, 'logs')
  mkdirSync(directory, { recursive: true })
  const files = writeNodeFiles({
    ...{ directory, logs, packages, kubeletPort, kubeconfig, nodeName, bridge: nodeBridge, subnet: podSubnet },
    ...(isCluster ? { address: nodeAddress } : {}),
    ...(hasGvisor ? { runsc: join(packages.path, 'runsc') } : {}),
    kubelet: binaries.kubelet.path,
  })
  const scheduler = startProgram({
    name: 'kube-scheduler',
    path: binaries['kube-scheduler'].path,
    args: [
      `--kubeconfig=${kubeconfig}`,
      '--leader-elect=false',
      '--bind-address=127.0.0.1',
      `--secure-port=${schedulerPort}`,
    ],
    logFile: join(logs, 'kube-scheduler.log'),
  })
  const node = startProgram({
    name: 'node',
    path: 'unshare',
    args: ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc', 'sh', files.initScript],
    logFile: join(logs, 'node.log'),
  })
  const stop = async (): Promise<string[]> => {
    await scheduler.stop()
    await end(node)
    await run('ip', ['link', 'delete', nodeBridge]).catch(() => {}) // there is none before the first Pod
    writeFileSync(forwarding, wasForwarding)
    await removeCgroups(before)
    rmSync(directory, { recursive: true, force: true })
    return [...hostTraces(directory, nodeBridge), ...cgroupsLeft(before)]
  }
  try {
    const imageFiles = join(directory, 'images')
    const ctr = (...args: string[]): Promise<unknown> =>
      run(packages.ctr, ['--address', files.socket, '-n', 'k8s.io', ...args], { timeout: 300_000 })
    const ready = { timeoutMs: 240_000, signal: options.signal }
    await untilReady('containerd', [node], () => ctr('version').then(() => true), ready)
    const pause: ImageContents = {
      reference: pauseImage,
      entrypoint: ['/bin/busybox', 'tail', '-f', '/dev/null'],
      files: new Map([['/bin/busybox', packages.busybox]]),
    }
    for (const [index, image] of [pause, ...(await options.images(packages.busybox))].entries()) {
      const place = join(imageFiles, String(index))
      mkdirSync(place, { recursive: true })
      await ctr('images', 'import', await writeImage(place, image))
    }
    rmSync(imageFiles, { recursive: true })
    for (const archive of options.archives ?? []) await ctr('images', 'import', archive)
    writeFileSync(join(directory, 'images-imported'), '')
    const client = kubeClientFromConfig(await loadKubeConfig({ path: kubeconfig }))
    try {
      await untilReady('node', [node, scheduler], () => isReady(client), ready)
    } finally {
      await client.close()
    }
  } catch (error) {
    await stop()
    throw error
  }
  const version = async (path: string): Promise<string> =>
    (await run(path, ['--version'], { timeout: 10_000 })).stdout.split('\n')[0] ?? ''
  const facts = {
    kubelet: binaries.kubelet.version,
    'kube-scheduler': binaries['kube-scheduler'].version,
    containerd: await version(packages.containerd),
    runc: await version(packages.runc),
  }
  return { name: nodeName, facts, stop }
}

/** Debian's containerd does not know shims of others as it should: this one is built, with gVisor beside it. */
async function withGvisor(packages: NodePackages, options: EnsureOptions): Promise<NodePackages> {
  const built = await ensureOracle(
    ['containerd', 'ctr', 'containerd-shim-runc-v2', 'runsc', 'containerd-shim-runsc-v1'],
    options,
  )
  return { ...packages, containerd: built.containerd.path, ctr: built.ctr.path, path: dirname(built.runsc.path) }
}

async function isReady(client: KubeClient): Promise<boolean> {
  const node = await client.find(Nodes, { name: nodeName })
  return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
}

/** Its first process takes everything else along, so nothing is gained by asking politely. */
async function end(node: Program): Promise<void> {
  if (node.ending() === undefined) process.kill(node.pid, 'SIGKILL')
  await node.stop()
}
