import { statfs } from 'node:fs/promises'
import { arch, cpus, hostname, machine, release, totalmem } from 'node:os'
import type { Node, NodeSpec, NodeStatus } from '@corral/resources'
import type { Tier } from './isolation/isolation.js'
import { runtimeHandlers } from './pod/runtime-handler.js'

/** What this machine has to give, in plain numbers. */
export interface Capacity {
  cpuMillis: number
  memoryBytes: number
  ephemeralStorageBytes: number
  pods: number
}

export interface NodeFacts {
  name: string
  tier: Tier
  hostIP: string
  capacity: Capacity
  machine: { hostname: string; arch: string; kernel: string; machineId: string }
  kubeletPort?: number | undefined
  version: string
}

const longestPodList = 110

export async function readCapacity(dataDir: string): Promise<Capacity> {
  const disk = await statfs(dataDir)
  return {
    cpuMillis: cpus().length * 1000,
    memoryBytes: totalmem(),
    ephemeralStorageBytes: disk.bavail * disk.bsize,
    pods: longestPodList,
  }
}

export function readMachine(): NodeFacts['machine'] {
  const arches: Record<string, string> = { x64: 'amd64', arm64: 'arm64' }
  return { hostname: hostname(), arch: arches[arch()] ?? machine(), kernel: release(), machineId: hostname() }
}

/** The Node object this machine registers. */
export function nodeObject(facts: NodeFacts, now: Date): Node & { spec: NodeSpec; status: NodeStatus } {
  const amounts = {
    cpu: `${facts.capacity.cpuMillis / 1000}`,
    memory: `${Math.floor(facts.capacity.memoryBytes / 1024)}Ki`,
    'ephemeral-storage': `${Math.floor(facts.capacity.ephemeralStorageBytes / 1024)}Ki`,
    pods: `${facts.capacity.pods}`,
  }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: facts.name,
      labels: {
        'kubernetes.io/hostname': facts.name,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': facts.machine.arch,
        'corral.dev/isolation': facts.tier,
      },
    },
    spec: {},
    status: {
      capacity: amounts,
      allocatable: amounts,
      conditions: nodeConditions(now),
      addresses: [
        { type: 'InternalIP', address: facts.hostIP },
        { type: 'Hostname', address: facts.machine.hostname },
      ],
      runtimeHandlers: ['', ...runtimeHandlers(facts.tier)].map((name) => ({ name })),
      ...(facts.kubeletPort === undefined ? {} : { daemonEndpoints: { kubeletEndpoint: { Port: facts.kubeletPort } } }),
      nodeInfo: {
        architecture: facts.machine.arch,
        operatingSystem: 'linux',
        osImage: 'host toolchain',
        kernelVersion: facts.machine.kernel,
        kubeletVersion: facts.version,
        kubeProxyVersion: '',
        containerRuntimeVersion: `corral-${facts.tier}://${facts.version.replace(/^v/, '')}`,
        machineID: facts.machine.machineId,
        systemUUID: facts.machine.machineId,
        bootID: facts.machine.machineId,
      },
    },
  }
}

function nodeConditions(now: Date): NonNullable<NodeStatus['conditions']> {
  const at = now.toISOString().replace(/\.\d+Z$/, 'Z')
  const condition = (type: string, status: string, reason: string, message: string) => ({
    type,
    status,
    reason,
    message,
    lastHeartbeatTime: at,
    lastTransitionTime: at,
  })
  return [
    condition('MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'),
    condition('DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'),
    condition('PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'),
    condition('Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'),
  ]
}
