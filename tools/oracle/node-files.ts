import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NodePackages } from './node-packages.js'

export const pauseImage = 'docker.io/corral/pause:latest'

/** Where the parts of a node keep their things, all below one directory. */
export interface NodeFiles {
  readonly socket: string
  readonly containerdConfig: string
  readonly kubeletConfig: string
  readonly initScript: string
}

export interface NodeFileOptions {
  directory: string
  logs: string
  packages: NodePackages
  kubelet: string
  kubeletPort: number
  kubeconfig: string
  nodeName: string
  bridge: string
  subnet: string
  /** Where Pods ask for names, and by which address the API server finds the kubelet. */
  address?: string
  /** `runsc` for the runtime `gvisor`, which needs its shim on the path and containerd 2. */
  runsc?: string
}

/** Writes the configuration of containerd, of its network and of the kubelet, and the script that starts both. */
export function writeNodeFiles(options: NodeFileOptions): NodeFiles {
  const at = (...parts: string[]): string => join(options.directory, ...parts)
  for (const name of ['cni', 'kubelet', 'certs', 'opt']) mkdirSync(at(name), { recursive: true })
  const files: NodeFiles = {
    socket: at('containerd.sock'),
    containerdConfig: at('containerd.toml'),
    kubeletConfig: at('kubelet.json'),
    initScript: at('init.sh'),
  }
  if (options.runsc) writeFileSync(at('runsc.toml'), runscConfig(options.runsc))
  writeFileSync(files.containerdConfig, containerdConfig(options, files.socket, at))
  writeFileSync(at('cni', '10-bridge.conflist'), JSON.stringify(network(options)))
  writeFileSync(at('resolv.conf'), 'nameserver 127.0.0.1\n')
  writeFileSync(files.kubeletConfig, JSON.stringify(kubeletConfig(options, files.socket, at('resolv.conf'))))
  writeFileSync(files.initScript, initScript(options, files, at))
  return files
}

function containerdConfig(options: NodeFileOptions, socket: string, at: (...parts: string[]) => string): string {
  const { packages } = options
  const cri = 'plugins."io.containerd.grpc.v1.cri"'
  const runtime = `${cri}.containerd.runtimes.runc`
  return `version = 2
root = ${quote(at('containerd'))}
state = ${quote(at('state'))}
[grpc]
address = ${quote(socket)}
[plugins."io.containerd.internal.v1.opt"]
path = ${quote(at('opt'))}
[${cri}]
sandbox_image = ${quote(pauseImage)}
# Root in a container of its own may not lower the score, and then no Pod would start.
restrict_oom_score_adj = true
disable_apparmor = true
[${cri}.containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"
[${runtime}]
runtime_type = "io.containerd.runc.v2"
[${runtime}.options]
BinaryName = ${quote(packages.runc)}
SystemdCgroup = false
${options.runsc ? gvisorRuntime(`${cri}.containerd.runtimes.gvisor`, at('runsc.toml')) : ''}[${cri}.cni]
bin_dir = ${quote(packages.plugins)}
conf_dir = ${quote(at('cni'))}
`
}

function gvisorRuntime(runtime: string, config: string): string {
  return `[${runtime}]
runtime_type = "io.containerd.runsc.v1"
[${runtime}.options]
TypeUrl = "io.containerd.runsc.v1.options"
ConfigPath = ${quote(config)}
`
}

/** As most clusters run it, with a network stack of its own. */
function runscConfig(runsc: string): string {
  return `binary_name = ${quote(runsc)}
[runsc_config]
platform = "systrap"
network = "sandbox"
`
}

const quote = (text: string): string => JSON.stringify(text)

function network({ bridge, subnet }: NodeFileOptions): object {
  const ipam = { type: 'host-local', ranges: [[{ subnet }]], routes: [{ dst: '0.0.0.0/0' }] }
  return {
    cniVersion: '0.4.0',
    name: bridge,
    plugins: [{ type: 'bridge', bridge, isGateway: true, ipam }],
  }
}

function kubeletConfig(options: NodeFileOptions, socket: string, resolvConf: string): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: 'AlwaysAllow' },
    port: options.kubeletPort,
    healthzPort: 0,
    cgroupDriver: 'cgroupfs',
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    failSwapOn: false,
    failCgroupV1: false,
    makeIPTablesUtilChains: false,
    resolvConf,
    ...(options.address ? { clusterDNS: [options.address], clusterDomain: 'cluster.local' } : {}),
    evictionHard: { 'memory.available': '10Mi' },
    imageGCHighThresholdPercent: 100,
    containerRuntimeEndpoint: `unix://${socket}`,
  }
}

/**
 * First process of the node's own process and mount namespaces: killing it ends everything on the node and takes its
 * mounts along. The directories that containerd and kubelet insist on are made of memory here.
 */
function initScript(options: NodeFileOptions, files: NodeFiles, at: (...parts: string[]) => string): string {
  const { packages, kubelet, kubeconfig, nodeName, logs } = options
  const log = (name: string): string => `>>${shell(join(logs, `${name}.log`))} 2>&1 &`
  return `set -eu
for place in /run /var/lib /var/log; do mount -t tmpfs tmpfs "$place"; done
mkdir -p /run/netns /var/lib/cni /var/lib/kubelet
export PATH=${shell(packages.path)}:"$PATH"
${shell(packages.containerd)} --config ${shell(files.containerdConfig)} ${log('containerd')}
# All Pods together would weigh no more than one process of a busy machine.
shares=/sys/fs/cgroup/cpu/k8s.io
if [ -e /sys/fs/cgroup/cpu/cpu.shares ]; then mkdir -p "$shares"; echo 16384 >"$shares/cpu.shares"; fi
until [ -S ${shell(files.socket)} ] && [ -e ${shell(at('images-imported'))} ]; do sleep 0.1; done
${shell(kubelet)} --config=${shell(files.kubeletConfig)} --kubeconfig=${shell(kubeconfig)} \\
  --hostname-override=${nodeName} ${options.address ? `--node-ip=${options.address} ` : ''}--root-dir=${shell(at('kubelet'))} --cert-dir=${shell(at('certs'))} ${log('kubelet')}
while :; do wait; sleep 1; done
`
}

const shell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
