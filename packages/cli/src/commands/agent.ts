import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { agentAdapters, agentCapabilityNames, isCapable } from '@corral/agents'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { findPlatform } from '../client/find-platform.js'
import { tasksClient } from '../client/tasks.js'
import {
  type InstallableAgent,
  installableAgents,
  installedAgents,
  linkTarget,
  programLink,
  versionDirectory,
  versionsOf,
} from '../installed-agents.js'
import { table } from '../output/table.js'
import { dataDirectoryOf, letSandboxesRead } from '../platform/data-directory.js'
import { examples, print } from './common.js'

interface AgentOptions {
  dataDir?: string
  version?: string
  force?: boolean
  json?: boolean
}

export function addAgentCommand(program: Command): void {
  const agent = program
    .command('agent')
    .summary('coding agents that sandboxes can run')
    .description('Installed agents are mounted read-only into every sandbox of the platform, at /opt/corral/agents.')
  const common = (command: Command): Command =>
    command.option('--data-dir <dir>', 'data directory of the platform').option('--json', 'print JSON')
  const names = installableAgents()
    .map(({ name }) => name)
    .join(', ')

  common(agent.command('install').argument('<name>', names))
    .summary('install an agent from npm')
    .description(
      'Installs an exact version beside what is there and uses it for tasks that start from now on. Tasks that run keep\nthe version they started with.',
    )
    .option('--version <version>', 'an exact version instead of the one this release was tested with')
    .addHelpText('after', commandExamples('install'))
    .hook('preAction', letSandboxesRead)
    .action((name: string, options: AgentOptions) => install(name, options))
  common(agent.command('list')).summary('agents, what is installed and what they can do').action(list)
  common(agent.command('remove').argument('<name>', names))
    .summary('remove an installed agent')
    .description('Removes every version, or one. Refuses while tasks of a running platform use the agent.')
    .option('--version <version>', 'only this version')
    .option('--force', 'also while tasks use it, which then may fail')
    .addHelpText('after', commandExamples('remove'))
    .action((name: string, options: AgentOptions) => remove(name, options))
}

function commandExamples(verb: string): string {
  const [first, second] = installableAgents()
  return examples(
    `corral agent ${verb} ${second?.name}`,
    `corral agent ${verb} ${first?.name} --version ${first?.install.version}`,
  )
}

function list(options: AgentOptions): void {
  const installed = new Map(installedAgents(agentsDirectory(options)).map((entry) => [entry.name, entry]))
  const agents = [...agentAdapters.values()].map((adapter) => ({
    name: adapter.name,
    title: adapter.title,
    summary: adapter.summary,
    package: adapter.install?.package ?? null,
    tested_version: adapter.install?.version ?? null,
    installed: adapter.install ? (installed.get(adapter.name)?.version ?? null) : 'built in',
    versions: installed.get(adapter.name)?.versions ?? [],
    providers: adapter.speaks ?? [],
    capabilities: agentCapabilityNames.filter((name) => isCapable(adapter.capabilities, name)),
  }))
  print({ agents }, options, () =>
    table(
      ['NAME', 'INSTALLED', 'WHAT', 'CAN'],
      agents.map((row) => [
        row.name,
        row.installed ?? `no (corral agent install ${row.name})`,
        row.summary,
        row.capabilities.join(', '),
      ]),
    ),
  )
}

/** Installs beside what is there and switches over at the end: a sandbox that starts meanwhile finds one or the other. */
async function install(name: string, options: AgentOptions): Promise<void> {
  const adapter = installable(name)
  const version = checkedVersion(options.version ?? adapter.install.version)
  const directory = agentsDirectory(options)
  const target = versionDirectory(directory, name, version)
  mkdirSync(join(directory, 'lib'), { recursive: true, mode: 0o755 })
  mkdirSync(join(directory, 'bin'), { recursive: true, mode: 0o755 })
  if (!versionsOf(directory, adapter).includes(version)) await fetchPackage(adapter, version, target, options)
  makeReadable(target)
  const link = programLink(directory, adapter)
  rmSync(`${link}.new`, { force: true })
  symlinkSync(linkTarget(adapter, version), `${link}.new`)
  renameSync(`${link}.new`, link)
  print({ name, version, directory: target }, options, () => `${name} ${version} is installed`)
}

async function fetchPackage(
  { install: { package: packageName, program } }: InstallableAgent,
  version: string,
  target: string,
  options: AgentOptions,
): Promise<void> {
  const half = `${target}.${process.pid}.part`
  rmSync(half, { recursive: true, force: true })
  mkdirSync(half, { recursive: true, mode: 0o755 })
  writeFileSync(join(half, 'package.json'), '{"private":true}\n')
  if (!options.json) process.stderr.write(`installing ${packageName}@${version}\n`)
  try {
    await npmInstall(`${packageName}@${version}`, half)
    if (!existsSync(join(half, 'node_modules', '.bin', program)))
      throw new CliError(`${packageName}@${version} brings no program "${program}"`)
    rmSync(target, { recursive: true, force: true })
    renameSync(half, target)
  } finally {
    rmSync(half, { recursive: true, force: true })
  }
}

const installTimeoutMs = 20 * 60_000

/** The program's declared engine may be newer than ours: the agents bring what they need. */
function npmInstall(what: string, prefix: string): Promise<void> {
  const args = ['install', '--no-audit', '--no-fund', '--engine-strict=false', '--prefix', prefix, what]
  return new Promise((resolve, reject) => {
    const npm = spawn('npm', args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: installTimeoutMs })
    let errors = ''
    npm.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(-8_000)
    })
    npm.once('error', (cause) =>
      reject(new CliError(`npm could not be started: ${cause.message}`, { hint: 'Install Node with npm.', cause })),
    )
    npm.once('close', (code, signal) => {
      if (code === 0) return resolve()
      const why = signal ? `it was ended by ${signal}` : errors.trim().split('\n').slice(-3).join('; ')
      reject(
        new CliError(`npm could not install ${what}: ${why}`, {
          hint: 'Check the version and that this machine reaches the npm registry, then try again.',
        }),
      )
    })
  })
}

async function remove(name: string, options: AgentOptions): Promise<void> {
  const adapter = installable(name)
  const directory = agentsDirectory(options)
  const present = versionsOf(directory, adapter)
  const versions = options.version ? present.filter((version) => version === options.version) : present
  if (versions.length === 0)
    throw new CliError(`${name}${options.version ? ` ${options.version}` : ''} is not installed`, {
      hint: present.length > 0 ? `Installed: ${present.join(', ')}.` : 'Nothing to remove.',
    })
  if (!options.force) await refuseWhileUsed(name, options)
  const current = installedAgents(directory).find((entry) => entry.name === name)?.version
  if (current === undefined || versions.includes(current)) rmSync(programLink(directory, adapter), { force: true })
  for (const version of versions) {
    const path = versionDirectory(directory, name, version)
    // Out of sight at once, whatever becomes of the rest.
    renameSync(path, `${path}.${process.pid}.part`)
    rmSync(`${path}.${process.pid}.part`, { recursive: true, force: true })
  }
  print({ name, removed: versions }, options, () => `removed ${name} ${versions.join(', ')}`)
}

async function refuseWhileUsed(name: string, options: AgentOptions): Promise<void> {
  const platform = await findPlatform(options)
  if (!platform) return
  const client = tasksClient(platform)
  for (const status of ['PROVISIONING', 'RUNNING', 'WAITING_APPROVAL', 'WAITING_INPUT'] as const) {
    const { tasks } = await client.list({ status, limit: 500 })
    const user = tasks.find(({ agent }) => agent.name === name)
    if (user)
      throw new CliError(`task ${user.id} uses ${name}`, {
        hint: 'Wait for it, cancel it, or remove the agent with --force.',
      })
  }
}

function installable(name: string): InstallableAgent {
  const adapter = installableAgents().find((entry) => entry.name === name)
  if (adapter) return adapter
  const known = installableAgents().map((entry) => entry.name)
  throw new CliError(
    agentAdapters.has(name) ? `agent "${name}" needs no installation` : `there is no agent "${name}" to install`,
    { exitCode: 2, hint: `Known: ${known.join(', ')}.` },
  )
}

/** A tag or range would install another version tomorrow; a path or address, something else altogether. */
function checkedVersion(version: string): string {
  if (/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version)) return version
  throw new CliError(`"${version}" is not an exact version`, { exitCode: 2, hint: 'Give one such as 2.1.325.' })
}

/** Sandboxes run as other users: everything must be readable by them. */
function makeReadable(path: string): void {
  const result = spawnSync('chmod', ['-R', 'a+rX', path])
  if (result.status !== 0) chmodSync(dirname(path), 0o755)
}

function agentsDirectory(options: AgentOptions): string {
  return dataDirectoryOf(options).agents
}
