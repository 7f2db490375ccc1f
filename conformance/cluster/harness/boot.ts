import { chmodSync, cpSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type ControlPlane,
  ensureOracle,
  nodeAddress,
  prepareNetwork,
  startClusterNetwork,
  startControlPlane,
  startRealNode,
} from '../../../tools/oracle/index.js'
import { runnerImage } from '../../controller/harness/runner-image.js'

const root = join(import.meta.dirname, '../../..')
const images = join(root, 'build/images')

/** Of this release: the images are named after it. */
export const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }

const needed = ['corral', 'corral-daemon', 'corral-claude']
/** With Python, Go, Rust and a C compiler, of which tasks of these languages are run. */
export const languagesImage: string = `corral/languages:${version}`

export interface BootOptions {
  hasLanguages?: boolean
  hasGvisor: boolean
  /** Requests of this group of users are written down. */
  audited?: string
}

/** A cluster of one real node, empty but for storage and runtimes. */
export interface RealCluster {
  readonly plane: ControlPlane
  readonly helm: string
  readonly facts: Readonly<Record<string, string>>
  /** Copies what every program wrote. */
  keepLogs(directory: string): void
  /** Ends everything. Answers what could not be undone. */
  stop(): Promise<string[]>
}

/** Starts it in the network and process namespaces of this process, which have to be its own. */
export async function bootCluster({ hasGvisor, hasLanguages, audited }: BootOptions): Promise<RealCluster> {
  await prepareNetwork()
  const plane = await startControlPlane({
    podAddress: nodeAddress,
    // Clusters that guard owner references are the strictest judge of our permissions.
    apiserverFlags: ['--enable-admission-plugins=OwnerReferencesPermissionEnforcement'],
    ...(audited ? { audited } : {}),
    managerFlags: [
      // Each controller with the rights of its own account, as clusters have it.
      '--use-service-account-credentials=true',
      '--horizontal-pod-autoscaler-sync-period=2s',
      '--horizontal-pod-autoscaler-downscale-stabilization=5s',
    ],
  })
  try {
    const node = await startRealNode({
      plane,
      isCluster: true,
      hasGvisor,
      images: async (busybox) => [await runnerImage(busybox)],
      archives: [...needed, ...(hasLanguages ? ['corral-languages'] : [])].map((name) => join(images, `${name}.tar`)),
    })
    const network = await startClusterNetwork(plane).catch(async (error: unknown) => {
      await node.stop()
      throw error
    })
    const { helm } = await ensureOracle(['helm'])
    const { version: kubernetes } = plane.binaries['kube-apiserver']
    return {
      plane,
      helm: helm.path,
      facts: { 'kube-apiserver': kubernetes, ...node.facts, ...network.facts, helm: helm.version },
      keepLogs: (directory) => cpSync(join(plane.directory, 'logs'), directory, { recursive: true }),
      async stop() {
        await network.stop()
        const left = await node.stop()
        await plane.stop()
        return left
      },
    }
  } catch (error) {
    await plane.stop()
    throw error
  }
}

/** A volume on the disk of the node; with a claim, for that one alone. */
export function volumeIn(directory: string, name: string, claim?: { namespace: string; name: string }): object {
  const path = volumePath(directory, name)
  mkdirSync(path, { recursive: true })
  chmodSync(path, 0o777)
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      capacity: { storage: '20Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      hostPath: { path },
      ...(claim ? { claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...claim } } : {}),
    },
  }
}

/** Where it lies. */
export const volumePath = (directory: string, name: string): string => join(directory, 'volumes', name)

/** What a cluster has before anything is installed: storage and runtimes. */
export function surroundings({ directory }: ControlPlane): object[] {
  // One for each installation: a volume that was used is not given to another claim.
  return [
    ...['first', 'second', 'third', 'fourth'].map((name) => volumeIn(directory, name)),
    { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'gvisor' }, handler: 'gvisor' },
  ]
}

/** Values of the chart: two cores hold ten sandboxes only if each asks for little. */
export function smallValues(modelUrl: string, tracing: object = {}): object {
  const small = { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '2Gi' } }
  return {
    server: { maxTasks: 12, resources: small, extraEnv: [{ name: 'ANTHROPIC_BASE_URL', value: modelUrl }] },
    controllers: { resources: small },
    sandbox: { warm: 2, resources: small },
    tracing,
  }
}
