import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Architecture, debianFiles, debianName, runForeign } from './foreign-machine.js'

/** What every image has: a shell, git, certificates, and an init that reaps what agents leave behind. */
export const basePackages: readonly string[] = ['git', 'ca-certificates', 'tini']
/** What tasks in Python, Go, Rust and C build with, besides Node, which every image has. */
export const languagePackages: readonly string[] = [
  ...basePackages,
  ...['python3', 'python3-venv', 'python3-pip', 'golang-go', 'rustc', 'cargo', 'gcc', 'g++', 'make', 'pkg-config'],
  ...['libssl-dev', 'curl', 'jq', 'unzip', 'procps'],
]
const suite = 'bookworm'
const debianSources = '/etc/apt/sources.list.d/debian.sources'

/** What keeps the base from being built here, one line each; empty where it can be. */
export function baseObstacles(): string[] {
  const missing: string[] = []
  if (process.platform !== 'linux') missing.push('this is not Linux')
  if (process.getuid?.() !== 0) missing.push('mmdebstrap needs root')
  for (const tool of ['apt-get', 'dpkg', 'perl', 'tar'])
    if (!(process.env.PATH ?? '').split(':').some((directory) => existsSync(join(directory, tool))))
      missing.push(`${tool} is not installed`)
  return missing
}

export interface BaseLayerOptions {
  epochSeconds: number
  architecture: Architecture
  packages?: readonly string[] | undefined
}

/**
 * A minimal Debian as a tar, built once per list of packages and kept in the cache. The packages are those the machine's
 * own sources have today: sources that name a snapshot give the same base on every day. That of another machine is built
 * by its own programs, emulated.
 */
export function baseLayer(cache: string, options: BaseLayerOptions): string {
  const { epochSeconds, architecture, packages = basePackages } = options
  const key = createHash('sha256')
    .update(JSON.stringify([suite, packages, epochSeconds, architecture]))
    .digest('hex')
  const tar = join(cache, `base-${key.slice(0, 12)}.tar`)
  if (existsSync(tar)) return tar
  mkdirSync(cache, { recursive: true })
  const tools = join(debianFiles(cache, 'mmdebstrap'), 'usr/bin')
  const without = ['man', 'doc', 'locale', 'info'].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`)
  const temporary = `${tar}.${process.pid}`
  const args = [
    '--quiet',
    '--variant=minbase',
    '--mode=root',
    '--format=tar',
    `--architectures=${debianName[architecture]}`,
    // It looks for an emulator that the whole machine knows; ours is known inside its namespaces alone.
    ...(architecture === process.arch ? [] : ['--skip=check/qemu']),
    `--include=${packages.join(',')}`,
    ...without,
    '--dpkgopt=path-include=/usr/share/doc/*/copyright',
    suite,
    temporary,
    ...(existsSync(debianSources) ? [debianSources] : []),
  ]
  try {
    const command = ['perl', join(tools, 'mmdebstrap'), ...args]
    const env = { ...process.env, PATH: `${tools}:${process.env.PATH}`, SOURCE_DATE_EPOCH: String(epochSeconds) }
    if (architecture === process.arch)
      execFileSync('perl', command.slice(1), { env, stdio: ['ignore', 'ignore', 'inherit'], timeout: 30 * 60_000 })
    else runForeign(cache, architecture, command, env)
    renameSync(temporary, tar)
  } finally {
    rmSync(temporary, { force: true })
  }
  return tar
}
