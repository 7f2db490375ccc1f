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
])

const requirements = /^requirements[\w.-]*\.txt$/

/**
 * Whether the content of a file of the repository is part of the key: those the environment names, else all known lock and
 * version files; and every file that the set-up script names, whose content is part of what it does. Pure.
 */
export function isKeyFile(
  path: string,
  { named, setup, source }: { named: readonly string[] | undefined; setup: string; source: string },
): boolean {
  if ((setup === '' && path === source) || isNamedIn(setup, path)) return true
  if (named) return named.some((each) => path === each || path.startsWith(`${each.replace(/\/+$/, '')}/`))
  const name = path.slice(path.lastIndexOf('/') + 1)
  return knownNames.has(name) || requirements.test(name)
}

/** Whether a script has the path of a file as a word, from the root or from a directory that it changes to. */
function isNamedIn(script: string, path: string): boolean {
  return script.split(/[\s;&|()<>"'=]+/).some((each) => {
    const word = each.replace(/^\.\//, '')
    // A plain word, such as `test`, may be the name of a file in any directory.
    return word === path || (/\w[./]\w/.test(word) && path.endsWith(`/${word}`))
  })
}
