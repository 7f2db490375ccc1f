import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, readdirSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { cp, mkdir, rename, rm } from 'node:fs/promises'
import { basename, delimiter, dirname, join, relative, resolve, sep } from 'node:path'
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
 * What belongs to a tool below its prefix. The prefix itself may be a whole home directory (`~/bin/node`) or `~/.local`,
 * so it is never mounted as such.
 */
interface ToolParts {
  /** Programs in `bin` that are the tool's own. A `bin` with others in it is not shown, only copies of these are. */
  isOwnProgram(name: string): boolean
  directories: readonly string[]
}

const toolParts: Readonly<Record<'node' | 'git', ToolParts>> = {
  node: { isOwnProgram: (name) => /^(node|npm|npx|corepack)$/.test(name), directories: ['lib/node_modules'] },
  git: {
    isOwnProgram: (name) => /^(git(-.*)?|scalar)$/.test(name),
    directories: ['libexec/git-core', 'share/git-core'],
  },
}

/**
 * The host's tools as read-only mounts: `/usr`, and the parts of the Node and git in use where they lie elsewhere. What
 * lies below a private directory cannot be bound once the pod's own user is in place, and what lies among programs of
 * another kind must not be: both are copied into the data directory, once per version.
 */
export async function hostToolchain(options: HostToolchainOptions): Promise<Toolchain> {
  const usr: BindMount = { source: '/usr', target: '/usr', readOnly: true }
  const searchPath = options.searchPath ?? process.env.PATH ?? ''
  const tools = [
    { name: 'node', path: options.nodePath ?? process.execPath },
    { name: 'git', path: findExecutable('git', searchPath) },
  ] as const
  const mounts: BindMount[] = [usr]
  const path: string[] = []
  for (const { name, path: executable } of tools) {
    const installation = executable && installationOf(executable)
    if (!installation) continue
    const target = `${insideRoot}/${name}`
    const parts = toolParts[name]
    if (isReachableByOthers(installation) && holdsOnlyTool(installation, parts)) {
      for (const part of presentParts(installation, parts)) {
        mounts.push({ source: join(installation, part), target: `${target}/${part}`, readOnly: true })
      }
    } else {
      const source = await copyInstallation(installation, parts, join(options.dataDir, 'runtime'))
      mounts.push({ source, target, readOnly: true })
    }
    path.push(`${target}/bin`)
  }
  return { mounts, path }
}

/** Whether `bin` holds the tool's own programs and links to packages installed into it, nothing else. */
function holdsOnlyTool(installation: string, { isOwnProgram, directories }: ToolParts): boolean {
  const bin = join(installation, 'bin')
  return readdirSync(bin, { withFileTypes: true }).every((entry) => {
    if (isOwnProgram(entry.name)) return true
    if (!entry.isSymbolicLink()) return false
    const leadsTo = relative(installation, resolve(bin, readlinkSync(join(bin, entry.name))))
    return directories.some((directory) => leadsTo.startsWith(directory + sep))
  })
}

function presentParts(installation: string, { directories }: ToolParts): string[] {
  return ['bin', ...directories.filter((directory) => existsSync(join(installation, directory)))]
}

/** The prefix of an executable outside `/usr` (`<prefix>/bin/node`), or undefined where `/usr` already has it. */
export function installationOf(executable: string): string | undefined {
  const real = realpathSync(executable)
  if (isBelow(real, '/usr') || isBelow(real, '/bin')) return undefined
  return dirname(dirname(real))
}

/** The first in the path that lies in a `bin`. Others, such as the shims of a version manager, find their tool outside only. */
function findExecutable(name: string, searchPath: string): string | undefined {
  return searchPath
    .split(delimiter)
    .map((directory) => join(directory, name))
    .find((candidate) => {
      try {
        accessSync(candidate, constants.X_OK)
        return basename(dirname(realpathSync(candidate))) === 'bin'
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

async function copyInstallation(installation: string, parts: ToolParts, into: string): Promise<string> {
  const programs = readdirSync(join(installation, 'bin')).filter((name) => parts.isOwnProgram(name))
  const times = programs.map((name) => statSync(join(installation, 'bin', name), { throwIfNoEntry: false })?.mtimeMs)
  const facts = [installation, ...programs, ...times].join('\0')
  const target = join(into, createHash('sha256').update(facts).digest('hex').slice(0, 16))
  if (existsSync(target)) return target
  const half = `${target}.${process.pid}.part`
  await mkdir(into, { recursive: true, mode: 0o711 })
  await rm(half, { recursive: true, force: true })
  const wanted = [...programs.map((name) => join('bin', name)), ...presentParts(installation, parts).slice(1)]
  for (const part of wanted) {
    await cp(join(installation, part), join(half, part), { recursive: true, verbatimSymlinks: true })
  }
  await rename(half, target)
  return target
}

const isBelow = (path: string, directory: string): boolean => path === directory || path.startsWith(directory + sep)
