import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { dataDirectoryAt, defaultDataDirectory } from '../platform/data-directory.js'
import { print } from './common.js'

/** Agents that come from npm, each at a version this release was tested with. */
export const installableAgents: Readonly<Record<string, { package: string; version: string; program: string }>> = {
  claude: { package: '@anthropic-ai/claude-code', version: '2.1.197', program: 'claude' },
}

interface AgentOptions {
  dataDir?: string
  version?: string
  json?: boolean
}

export function addAgentCommand(program: Command): void {
  const agent = program
    .command('agent')
    .summary('coding agents that sandboxes can run')
    .description('Installed agents are mounted read-only into every sandbox of the platform, at /opt/corral/agents.')
  const common = (command: Command): Command =>
    command.option('--data-dir <dir>', 'data directory of the platform').option('--json', 'print JSON')

  common(agent.command('install').argument('<name>', Object.keys(installableAgents).join(', ')))
    .summary('install an agent from npm')
    .option('--version <version>', 'an exact version instead of the tested one')
    .action((name: string, options: AgentOptions) => install(name, options))
  common(agent.command('list'))
    .summary('agents and what is installed')
    .action((options: AgentOptions) => {
      const directory = agentsDirectory(options)
      const rows = Object.entries(installableAgents).map(([name, entry]) => ({
        name,
        package: entry.package,
        installed: installedVersion(directory, name) ?? null,
      }))
      print({ agents: [{ name: 'command', package: null, installed: 'built in' }, ...rows] }, options, ({ agents }) =>
        agents
          .map((row) => `${row.name.padEnd(10)} ${row.installed ?? `not installed (corral agent install ${row.name})`}`)
          .join('\n'),
      )
    })
}

/** Installs beside what is there and switches over at the end: a sandbox that starts meanwhile finds one or the other. */
function install(name: string, options: AgentOptions): void {
  const entry = installableAgents[name]
  if (!entry)
    throw new CliError(`there is no agent "${name}" to install`, {
      exitCode: 2,
      hint: `Known: ${Object.keys(installableAgents).join(', ')}.`,
    })
  const wanted = options.version ?? entry.version
  const directory = agentsDirectory(options)
  const target = join(directory, 'lib', `${name}-${wanted}`)
  mkdirSync(join(directory, 'lib'), { recursive: true, mode: 0o755 })
  mkdirSync(join(directory, 'bin'), { recursive: true, mode: 0o755 })
  if (!existsSync(target)) {
    const half = `${target}.${process.pid}.part`
    rmSync(half, { recursive: true, force: true })
    mkdirSync(half, { recursive: true, mode: 0o755 })
    writeFileSync(join(half, 'package.json'), '{"private":true}\n')
    if (!options.json) process.stderr.write(`installing ${entry.package}@${wanted}\n`)
    const npm = spawnSync(
      'npm',
      ['install', '--no-audit', '--no-fund', '--engine-strict=false', '--prefix', half, `${entry.package}@${wanted}`],
      {
        encoding: 'utf8',
        timeout: 10 * 60_000,
      },
    )
    if (npm.status !== 0) {
      rmSync(half, { recursive: true, force: true })
      throw new CliError(
        `npm could not install ${entry.package}@${wanted}: ${npm.stderr?.trim().split('\n').slice(-3).join('; ') ?? npm.error}`,
      )
    }
    renameSync(half, target)
  }
  makeReadable(target)
  const link = join(directory, 'bin', entry.program)
  rmSync(`${link}.new`, { force: true })
  // Relative: inside a sandbox the directory has another name.
  symlinkSync(join('..', 'lib', `${name}-${wanted}`, 'node_modules', '.bin', entry.program), `${link}.new`)
  renameSync(`${link}.new`, link)
  print({ name, version: wanted, directory: target }, options, () => `${name} ${wanted} is installed`)
}

function installedVersion(directory: string, name: string): string | undefined {
  const entry = installableAgents[name]
  if (!entry) return undefined
  const found = existsSync(join(directory, 'lib'))
    ? readdirSync(join(directory, 'lib')).filter((path) => path.startsWith(`${name}-`) && !path.endsWith('.part'))
    : []
  for (const path of found) {
    const manifest = join(directory, 'lib', path, 'node_modules', entry.package, 'package.json')
    if (existsSync(manifest)) return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
  }
  return undefined
}

/** Sandboxes run as other users: everything must be readable by them. */
function makeReadable(path: string): void {
  const result = spawnSync('chmod', ['-R', 'a+rX', path])
  if (result.status !== 0) chmodSync(path, 0o755)
}

function agentsDirectory(options: AgentOptions): string {
  return dataDirectoryAt(options.dataDir ?? defaultDataDirectory(process.env)).agents
}
