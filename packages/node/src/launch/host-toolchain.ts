import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs'
import { cp, mkdir, rename, rm } from 'node:fs/promises'
import { delimiter, dirname, join, sep } from 'node:path'
import type { BindMount } from '../isolation/isolation.js'
import type { Toolchain } from './launch-plan.js'

export interface HostToolchainOptions {
  /** Copies of tools that other users cannot reach are kept below `<dataDir>/runtime`. */
  dataDir: string
  nodePath?: string
  searchPath?: string
}

const insideRoot = '/opt/corral/toolchain'

/**
 * The host's tools as read-only mounts: `/usr`, and the installations of the Node and git in use where they lie
 * elsewhere. What lies below a private directory cannot be bound once the pod's own user is in place, so it is copied
 * into the data directory, once per version.
 */
export async function hostToolchain(options: HostToolchainOptions): Promise<Toolchain> {
  const usr: BindMount = { source: '/usr', target: '/usr', readOnly: true }
  const searchPath = options.searchPath ?? process.env.PATH ?? ''
  const tools = [
    { name: 'node', path: options.nodePath ?? process.execPath },
    { name: 'git', path: findExecutable('git', searchPath) },
  ]
  const mounts: BindMount[] = [usr]
  const path: string[] = []
  for (const tool of tools) {
    if (!tool.path) continue
    const installation = installationOf(tool.path)
    if (!installation) continue
    const source = isReachableByOthers(installation)
      ? installation
      : await copyInstallation(installation, join(options.dataDir, 'runtime'))
    const target = `${insideRoot}/${tool.name}`
    mounts.push({ source, target, readOnly: true })
    path.push(`${target}/bin`)
  }
  return { mounts, path }
}

/** The prefix of an executable outside `/usr` (`<prefix>/bin/node`), or undefined where `/usr` already has it. */
export function installationOf(executable: string): string | undefined {
  const real = realpathSync(executable)
  if (isBelow(real, '/usr') || isBelow(real, '/bin')) return undefined
  return dirname(dirname(real))
}

function findExecutable(name: string, searchPath: string): string | undefined {
  return searchPath
    .split(delimiter)
    .map((directory) => join(directory, name))
    .find((candidate) => {
      try {
        accessSync(candidate, constants.X_OK)
        return true
      } catch {
        // Not in this directory: the next one is tried.
        return false
      }
    })
}

function isReachableByOthers(path: string): boolean {
  for (let current = path; ; current = dirname(current)) {
    if ((statSync(current).mode & 0o001) === 0) return false
    if (current === dirname(current)) return true
  }
}

async function copyInstallation(installation: string, into: string): Promise<string> {
  const binary = statSync(join(installation, 'bin'))
  const stamp = createHash('sha256').update(`${installation}\0${binary.mtimeMs}`).digest('hex').slice(0, 16)
  const target = join(into, stamp)
  if (existsSync(target)) return target
  const half = `${target}.${process.pid}.part`
  await mkdir(into, { recursive: true, mode: 0o711 })
  await rm(half, { recursive: true, force: true })
  for (const part of ['bin', 'lib', 'libexec', 'share/git-core']) {
    if (!existsSync(join(installation, part))) continue
    await cp(join(installation, part), join(half, part), { recursive: true, verbatimSymlinks: true })
  }
  await rename(half, target)
  return target
}

const isBelow = (path: string, directory: string): boolean => path === directory || path.startsWith(directory + sep)
