import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { agentAdapters } from '@corral/agents'
import { runCorral, runProgram } from '@corral/testing'

const cache =
  process.env.CORRAL_AGENTS_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'corral-agents')

/** The versions the workspace pins for tests, by package. */
export function pinnedVersions(): Readonly<Record<string, string>> {
  const manifest = join(dirname(fileURLToPath(import.meta.url)), '../../e2e/agents/package.json')
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { dependencies: Record<string, string> }).dependencies
}

/** Installs agents into the cache with our own command, once; later runs find them there. Takes minutes the first time. */
export async function installIntoCache(...names: string[]): Promise<void> {
  mkdirSync(cache, { recursive: true })
  for (const name of names) {
    const { code, stdout, stderr } = await runCorral(['agent', 'install', name, '--data-dir', cache, '--json'], {
      timeoutMs: 20 * 60_000,
    })
    if (code !== 0) throw new Error(`corral agent install ${name}: ${stderr}`)
    const { version } = JSON.parse(stdout) as { version: string }
    const pinned = pinnedVersions()[agentAdapters.get(name)?.install?.package ?? '']
    if (version !== pinned) throw new Error(`installed ${name} ${version}, pinned is ${pinned}`)
  }
}

/** Puts the cached installations into a platform's data directory: by hard links where the file system allows it. */
export async function provideAgents(dataDir: string): Promise<void> {
  const source = join(cache, 'agents')
  const target = join(dataDir, 'agents')
  const linked = await runProgram('cp', ['-al', `${source}/.`, `${target}/`])
  if (linked.code !== 0) cpSync(source, target, { recursive: true, verbatimSymlinks: true, force: true })
}
