import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type EnsureOptions, ensureOracle } from './binaries.js'
import type { ControlPlane } from './control-plane.js'
import { ensurePacketFilter } from './node-packages.js'
import { freePorts, type Program, startProgram, untilReady } from './program.js'
import { nodeAddress, nodeBridge } from './real-node.js'

const run = promisify(execFile)
const services = '10.96.0.0/16'

/** Names and addresses of Services, for Pods and for this machine: CoreDNS and kube-proxy. */
export interface ClusterNetwork {
  readonly facts: Readonly<Record<string, string>>
  stop(): Promise<void>
}

/**
 * Gives the network namespace of this process the node's bridge and address. It has to be one of our own: rules for
 * packets, routes and the bridge go with it.
 */
export async function prepareNetwork(): Promise<void> {
  const ip = (...args: string[]): Promise<unknown> => run('ip', args, { timeout: 10_000 })
  await ip('link', 'set', 'lo', 'up')
  await ip('link', 'add', nodeBridge, 'type', 'bridge')
  await ip('addr', 'add', `${nodeAddress}/24`, 'dev', nodeBridge)
  await ip('link', 'set', nodeBridge, 'up')
  await ip('route', 'add', services, 'dev', nodeBridge)
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1')
}

export async function startClusterNetwork(plane: ControlPlane, options: EnsureOptions = {}): Promise<ClusterNetwork> {
  const binaries = await ensureOracle(['kube-proxy', 'coredns'], options)
  const env = await ensurePacketFilter()
  const [health = 0, metrics = 0] = await freePorts(2)
  const file = (name: string, text: string): string => {
    writeFileSync(join(plane.directory, name), text)
    return join(plane.directory, name)
  }
  const log = (name: string): string => join(plane.directory, 'logs', `${name}.log`)
  const programs: Program[] = [
    startProgram({
      name: 'kube-proxy',
      path: binaries['kube-proxy'].path,
      args: [`--config=${file('kube-proxy.json', JSON.stringify(proxyConfig(plane, health, metrics)))}`],
      logFile: log('kube-proxy'),
      env,
    }),
    startProgram({
      name: 'coredns',
      path: binaries.coredns.path,
      args: ['-conf', file('Corefile', corefile(plane))],
      logFile: log('coredns'),
    }),
  ]
  const stop = async (): Promise<void> => {
    for (const program of programs) await program.stop()
  }
  try {
    const answers = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${health}/healthz`)).ok
    await untilReady('kube-proxy', programs, answers, { timeoutMs: 240_000, signal: options.signal })
  } catch (error) {
    await stop()
    throw error
  }
  return { facts: { 'kube-proxy': binaries['kube-proxy'].version, coredns: binaries.coredns.version }, stop }
}

function proxyConfig({ kubeconfig }: ControlPlane, health: number, metrics: number): object {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'iptables',
    clientConnection: { kubeconfig },
    hostnameOverride: 'real-node',
    // Answers between two Pods of one bridge pass this machine only if both ends see its address.
    iptables: { masqueradeAll: true, localhostNodePorts: false },
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    healthzBindAddress: `127.0.0.1:${health}`,
    metricsBindAddress: `127.0.0.1:${metrics}`,
  }
}

function corefile({ kubeconfig }: ControlPlane): string {
  return `.:53 {
  bind ${nodeAddress}
  errors
  kubernetes cluster.local in-addr.arpa {
    kubeconfig ${kubeconfig} corral
    pods insecure
  }
}
`
}
