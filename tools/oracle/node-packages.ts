import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { oracleCache } from './binaries.js'
import { OracleError } from './oracle-error.js'

const run = promisify(execFile)
const packages = ['containerd', 'runc', 'containernetworking-plugins', 'busybox-static'] as const
const filterPackages = [
  ...['iptables', 'libxtables12', 'libip4tc2', 'libip6tc2', 'libnftnl11', 'libmnl0'],
  ...['libnetfilter-conntrack3', 'libnfnetlink0'],
] as const

/** Programs of a real node as Debian builds them. They lie in the cache: nothing is installed on this machine. */
export interface NodePackages {
  readonly containerd: string
  readonly ctr: string
  readonly runc: string
  readonly busybox: string
  /** Directory of the network plugins. */
  readonly plugins: string
  /** Where `containerd-shim-runc-v2` is found. */
  readonly path: string
}

/**
 * What keeps a real node from running here, one line each; empty where it can. A node makes namespaces, bridges and
 * mounts, so it needs root, and its container runtime comes from Debian's packages.
 */
export function nodeObstacles(): string[] {
  const missing: string[] = []
  if (process.platform !== 'linux') missing.push('this is not Linux')
  if (process.getuid?.() !== 0) missing.push('containerd and kubelet need root')
  for (const tool of ['apt-get', 'dpkg', 'unshare', 'ip', 'tar', 'ldd'])
    if (!isOnPath(tool)) missing.push(`${tool} is not installed`)
  return missing
}

/** Fetches the packages once and unpacks them into the cache. Safe to repeat. */
export async function ensureNodePackages(): Promise<NodePackages> {
  const root = await unpacked('node', packages)
  return {
    containerd: join(root, 'usr/bin/containerd'),
    ctr: join(root, 'usr/bin/ctr'),
    runc: join(root, 'usr/sbin/runc'),
    busybox: join(root, 'bin/busybox'),
    plugins: join(root, 'usr/lib/cni'),
    path: join(root, 'usr/bin'),
  }
}

/** The environment in which kube-proxy finds an `iptables`. */
export async function ensurePacketFilter(): Promise<NodeJS.ProcessEnv> {
  const root = await unpacked('packet-filter', filterPackages)
  const triple = process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu'
  const libraries = join(root, 'usr/lib', triple)
  const links = join(oracleCache(), 'packet-filter-links')
  mkdirSync(links, { recursive: true })
  for (const name of [
    'iptables',
    'iptables-save',
    'iptables-restore',
    'ip6tables',
    'ip6tables-save',
    'ip6tables-restore',
  ]) {
    rmSync(join(links, name), { force: true })
    symlinkSync(join(root, 'usr/sbin/xtables-legacy-multi'), join(links, name))
  }
  return {
    ...process.env,
    PATH: `${links}:${process.env.PATH ?? ''}:/usr/sbin:/sbin`,
    LD_LIBRARY_PATH: libraries,
    XTABLES_LIBDIR: join(libraries, 'xtables'),
    XTABLES_LOCKFILE: join(links, 'lock'),
  }
}

/** Debian's Prometheus and the tool that checks rules for it. */
export async function ensurePrometheus(): Promise<{ prometheus: string; promtool: string }> {
  const root = await unpacked('prometheus', ['prometheus'])
  return { prometheus: join(root, 'usr/bin/prometheus'), promtool: join(root, 'usr/bin/promtool') }
}

/** Debian's judge of shell scripts. */
export async function ensureShellcheck(): Promise<string> {
  return join(await unpacked('shellcheck', ['shellcheck']), 'usr/bin/shellcheck')
}

async function unpacked(place: string, names: readonly string[]): Promise<string> {
  const root = join(oracleCache(), place)
  if (existsSync(root)) return root
  mkdirSync(oracleCache(), { recursive: true })
  const temporary = mkdtempSync(`${root}-`)
  try {
    await run('apt-get', ['download', ...names], { cwd: temporary, timeout: 300_000 })
    for (const file of readdirSync(temporary).filter((name) => name.endsWith('.deb')))
      await run('dpkg', ['-x', join(temporary, file), join(temporary, 'root')], { timeout: 60_000 })
    if (!existsSync(root)) renameSync(join(temporary, 'root'), root)
  } catch (cause) {
    throw new OracleError('NodeMissing', `apt-get cannot fetch ${names.join(', ')}`, { cause })
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
  return root
}

function isOnPath(tool: string): boolean {
  const directories = `${process.env.PATH ?? ''}:/usr/sbin:/sbin`.split(':')
  return directories.some((directory) => existsSync(join(directory, tool)))
}
