import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runCorral, runProgram } from '@corral/testing'

const cache =
  process.env.CORRAL_AGENTS_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'corral-agents')

/** The version the workspace pins for tests. */
export function pinnedClaudeVersion(): string {
  const manifest = join(dirname(fileURLToPath(import.meta.url)), '../../e2e/agents/package.json')
  const { dependencies } = JSON.parse(readFileSync(manifest, 'utf8')) as { dependencies: Record<string, string> }
  return dependencies['@anthropic-ai/claude-code'] ?? ''
}

/** Installs Claude Code into the cache with our own command, once; later runs find it there. */
export async function installIntoCache(): Promise<void> {
  mkdirSync(cache, { recursive: true })
  const { code, stdout, stderr } = await runCorral(['agent', 'install', 'claude', '--data-dir', cache, '--json'], {
    timeoutMs: 590_000,
  })
  if (code !== 0) throw new Error(`corral agent install claude: ${stderr}`)
  const { version } = JSON.parse(stdout) as { version: string }
  if (version !== pinnedClaudeVersion()) throw new Error(`installed ${version}, pinned is ${pinnedClaudeVersion()}`)
}

/** Puts the cached installation into a platform's data directory: by hard links where the file system allows it. */
export async function provideAgents(dataDir: string): Promise<void> {
  const source = join(cache, 'agents')
  const target = join(dataDir, 'agents')
  const linked = await runProgram('cp', ['-al', `${source}/.`, `${target}/`])
  if (linked.code !== 0) cpSync(source, target, { recursive: true, verbatimSymlinks: true, force: true })
}
