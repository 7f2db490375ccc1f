import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type AgentAdapter, type AgentPackage, agentAdapters } from '@corral/agents'

export interface InstalledAgent {
  name: string
  /** The version that new tasks use. */
  version: string
  /** Every version that is there, the one in use among them. */
  versions: string[]
}

export interface InstallableAgent extends AgentAdapter {
  install: AgentPackage
}

/** Agents that come from npm. */
export function installableAgents(): InstallableAgent[] {
  return [...agentAdapters.values()].filter((adapter): adapter is InstallableAgent => adapter.install !== undefined)
}

/** Agents below `directory` that a sandbox finds, each with its versions. */
export function installedAgents(directory: string): InstalledAgent[] {
  return installableAgents().flatMap((adapter) => {
    const version = currentVersion(directory, adapter)
    return version === undefined ? [] : [{ name: adapter.name, version, versions: versionsOf(directory, adapter) }]
  })
}

/** The directory one version of an agent lies in. */
export function versionDirectory(directory: string, name: string, version: string): string {
  return join(directory, 'lib', `${name}-${version}`)
}

/** The link by which sandboxes find the version in use. */
export function programLink(directory: string, { install }: InstallableAgent): string {
  return join(directory, 'bin', install.program)
}

/** Where that link points, from its own directory: inside a sandbox the directory above has another name. */
export function linkTarget({ name, install }: InstallableAgent, version: string): string {
  return join('..', 'lib', `${name}-${version}`, 'node_modules', '.bin', install.program)
}

export function versionsOf(directory: string, adapter: InstallableAgent): string[] {
  const lib = join(directory, 'lib')
  if (!existsSync(lib)) return []
  return readdirSync(lib)
    .filter((entry) => entry.startsWith(`${adapter.name}-`) && !entry.endsWith('.part'))
    .map((entry) => entry.slice(adapter.name.length + 1))
    .filter((version) => manifestVersion(directory, adapter, version) === version)
    .sort()
}

function currentVersion(directory: string, adapter: InstallableAgent): string | undefined {
  const versions = versionsOf(directory, adapter)
  try {
    const target = readlinkSync(programLink(directory, adapter))
    return versions.find((version) => target === linkTarget(adapter, version))
  } catch {
    // No link: none is in use.
    return undefined
  }
}

function manifestVersion(directory: string, { name, install }: InstallableAgent, version: string): string | undefined {
  const manifest = join(versionDirectory(directory, name, version), 'node_modules', install.package, 'package.json')
  if (!existsSync(manifest)) return undefined
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
}
