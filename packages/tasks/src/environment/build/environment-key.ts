import { createHash } from 'node:crypto'
import type { AgentTaskStatus } from '@corral/resources'
import type { KeyFile } from '../../repository/list-files.js'

/** Changes when a snapshot of an earlier release cannot be used any more. */
const formatVersion = 1

/** What a sandbox is made of, as far as what set-up leaves depends on it. */
export interface SandboxFacts {
  architecture: string
  /** What the root file system is: its distribution and the image that was asked for. */
  root: string
  home: string
  repository: string
}

export interface EnvironmentKey {
  /** Two environments with the same one are set up alike. */
  key: string
  /** The same without lock files: snapshots that share it differ in what `update` brings up to date. */
  baseKey: string
  files: KeyFile[]
}

/** The key of what set-up leaves. The commit is no part of it: most commits change no dependency. Pure. */
export function environmentKey(
  environment: NonNullable<AgentTaskStatus['environment']>,
  facts: SandboxFacts,
  files: readonly KeyFile[],
): EnvironmentKey {
  const { setup = '', env = {}, path = [], tools = [], services = [], secrets = [], source = '' } = environment
  const sorted = [...files].sort((a, b) => (a.path < b.path ? -1 : 1))
  const baseKey = digest([
    formatVersion,
    // A script that is a file of the repository is among the files.
    setup === '' ? source : '',
    setup,
    Object.entries(env).sort(),
    path,
    tools.map(({ name, version, bin }) => [name, version, bin]).sort(),
    services.map(({ name, use = '', run = '' }) => [name, use, run]),
    secrets.map(({ name, env: variable }) => [name, variable]).sort(),
    [facts.architecture, facts.root, facts.home, facts.repository],
    // A repository that changed its hash function is another one.
    sorted[0]?.oid.length ?? 0,
  ])
  return { key: digest([baseKey, sorted.map(({ path: file, oid }) => [file, oid])]), baseKey, files: sorted }
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex')
}

/** Names of files that say which dependencies a repository has, and which tools. */
const knownNames: ReadonlySet<string> = new Set([
  ...['package-lock.json', 'npm-shrinkwrap.json', 'pnpm-lock.yaml', 'yarn.lock', 'bun.lock', 'package.json', '.npmrc'],
  ...['bun.lockb', 'pnpm-workspace.yaml', '.yarnrc.yml', '.yarnrc', 'Pipfile', 'deno.lock'],
  ...['requirements.txt', 'constraints.txt', 'uv.lock', 'poetry.lock', 'Pipfile.lock', 'pyproject.toml', 'setup.py'],
  ...['setup.cfg', 'pdm.lock', 'environment.yml', 'go.mod', 'go.sum', 'go.work', 'go.work.sum'],
  ...['Cargo.lock', 'Cargo.toml', 'rust-toolchain', 'rust-toolchain.toml', 'pom.xml', 'build.gradle'],
  ...['build.gradle.kts', 'settings.gradle', 'settings.gradle.kts', 'gradle.lockfile', 'libs.versions.toml'],
  ...['gradle-wrapper.properties', 'CMakeLists.txt', 'conanfile.txt', 'conanfile.py', 'conan.lock', 'vcpkg.json'],
  ...['Gemfile', 'Gemfile.lock', 'composer.json', 'composer.lock', 'mix.lock', 'pubspec.lock', 'Package.resolved'],
  ...['.nvmrc', '.node-version', '.python-version', '.tool-versions', '.java-version', '.sdkmanrc', '.ruby-version'],
  ...['mise.toml', '.mise.toml'],
])

const requirements = /^requirements[\w.-]*\.txt$/

/**
 * Says of a path of the repository whether the file's content is part of the key: those the environment names, else all known
 * lock and version files; and every file that the set-up script names, whose content is part of what it does. What the
 * repository wrote is read once, not for each of its files: both may be many. Pure.
 */
export function keyFileRule({
  named,
  setup,
  source,
}: {
  named: readonly string[] | undefined
  setup: string
  source: string
}): (path: string) => boolean {
  const isInSetup = namedIn(setup)
  const wanted = named && new Set(named.map(withoutSlashes))
  return (path) => {
    if ((setup === '' && path === source) || isInSetup(path)) return true
    if (wanted) return wanted.has(path) || parentsOf(path).some((parent) => wanted.has(parent))
    const name = path.slice(path.lastIndexOf('/') + 1)
    return knownNames.has(name) || requirements.test(name)
  }
}

/** Whether a script has the path of a file as a word, from the root or from a directory that it changes to. */
function namedIn(script: string): (path: string) => boolean {
  const words = new Set(script.split(/[\s;&|()<>"'=]+/).map((each) => each.replace(/^\.\//, '')))
  // A plain word, such as `test`, may be the name of a file in any directory.
  const paths = new Set([...words].filter((word) => /\w[./]\w/.test(word)))
  return (path) => words.has(path) || (paths.size > 0 && endsOf(path).some((end) => paths.has(end)))
}

/** Not by a pattern: one that looks for slashes at the end tries every row of them. */
function withoutSlashes(path: string): string {
  let end = path.length
  while (path[end - 1] === '/') end -= 1
  return path.slice(0, end)
}

const slashesOf = (path: string): number[] => [...path.matchAll(/\//g)].map(({ index }) => index)
/** `a` and `a/b` of `a/b/c`. */
const parentsOf = (path: string): string[] => slashesOf(path).map((at) => path.slice(0, at))
/** `b/c` and `c` of `a/b/c`. */
const endsOf = (path: string): string[] => slashesOf(path).map((at) => path.slice(at + 1))
