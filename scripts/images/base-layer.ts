import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

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

/**
 * A minimal Debian as a tar, built once per list of packages and kept in the cache. The packages are those the machine's
 * own sources have today: sources that name a snapshot give the same base on every day.
 */
export function baseLayer(cache: string, epochSeconds: number, packages: readonly string[] = basePackages): string {
  const key = createHash('sha256')
    .update(JSON.stringify([suite, packages, epochSeconds, process.arch]))
    .digest('hex')
  const tar = join(cache, `base-${key.slice(0, 12)}.tar`)
  if (existsSync(tar)) return tar
  mkdirSync(cache, { recursive: true })
  const tools = mmdebstrap(cache)
  const without = ['man', 'doc', 'locale', 'info'].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`)
  const temporary = `${tar}.${process.pid}`
  const args = [
    '--quiet',
    '--variant=minbase',
    '--mode=root',
    '--format=tar',
    `--include=${packages.join(',')}`,
    ...without,
    '--dpkgopt=path-include=/usr/share/doc/*/copyright',
    suite,
    temporary,
    ...(existsSync(debianSources) ? [debianSources] : []),
  ]
  try {
    execFileSync('perl', [join(tools, 'mmdebstrap'), ...args], {
      env: { ...process.env, PATH: `${tools}:${process.env.PATH}`, SOURCE_DATE_EPOCH: String(epochSeconds) },
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: 30 * 60_000,
    })
    renameSync(temporary, tar)
  } finally {
    rmSync(temporary, { force: true })
  }
  return tar
}

/** The directory with mmdebstrap, fetched from Debian and unpacked into the cache: nothing is installed here. */
function mmdebstrap(cache: string): string {
  const place = join(cache, 'mmdebstrap')
  const programs = join(place, 'usr/bin')
  if (existsSync(programs)) return programs
  mkdirSync(place, { recursive: true })
  execFileSync('apt-get', ['download', 'mmdebstrap'], { cwd: place, stdio: 'ignore', timeout: 300_000 })
  for (const file of readdirSync(place).filter((name) => name.endsWith('.deb')))
    execFileSync('dpkg', ['-x', join(place, file), place], { timeout: 60_000 })
  return programs
}
