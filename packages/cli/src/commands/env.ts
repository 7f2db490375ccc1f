import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import {
  askedEgress,
  type EnvironmentRequest,
  type EnvironmentView,
  environmentFilePath,
  environmentJsonSchema,
} from '@corral/protocol'
import { resourcesOfPod, resourcesText, type SandboxResources } from '@corral/resources'
import type { EnvironmentGrants, RepositoryGrants } from '@corral/tasks'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { findPlatform } from '../client/find-platform.js'
import { tasksClient } from '../client/tasks.js'
import { environmentText, readLocalEnvironment, unusable } from '../environment/local-environment.js'
import { shellQuote } from '../output/shell-quote.js'
import { table } from '../output/table.js'
import { dataDirectoryOf, prepareDataDirectory } from '../platform/data-directory.js'
import { examples, print } from './common.js'
import { addBuildCommands, findEnvironment, megabytes, stateOf } from './env-build.js'
import { initEnvironment } from './env-init.js'
import { addToolsCommand } from './env-tools.js'
import { absoluteRepo } from './task-request.js'

interface EnvOptions {
  dataDir?: string
  json?: boolean
  schema?: boolean
  secret?: string[]
  image?: string[]
  cpu?: string
  memory?: string
  disk?: string
  part?: string
}

const collect = (value: string, all: string[] = []): string[] => [...all, value]

export function addEnvCommand(program: Command): void {
  const env = program
    .command('env')
    .summary('what a repository needs: its set-up, variables and network; built once for all tasks')
    .description(
      `A repository says in ${environmentFilePath} how it is set up. It may use the package mirror; what else of the network\nit asks for, you grant. Tasks read the file from the commit they start from, never from an agent's own.`,
    )
  const common = (command: Command): Command =>
    command.option('--data-dir <dir>', 'data directory of the platform').option('--json', 'print JSON')

  common(env.command('init').argument('[directory]', 'the repository', '.'))
    .summary(`write ${environmentFilePath} from lock files, or from a file of another tool`)
    .option('--force', 'replace a file that is there')
    .option('--from <file>', 'take this file of another tool, also where lock files are there')
    .addHelpText('after', examples('corral env init', 'corral env init ../service --force'))
    .action(initEnvironment)
  common(env.command('validate').argument('[file]', 'the file, or the repository it is in', '.'))
    .summary('check an environment file')
    .option('--schema', 'print the JSON Schema of the file instead, for editors')
    .addHelpText('after', examples('corral env validate', 'corral env validate --schema > environment.schema.json'))
    .action(validate)
  common(env.command('show').argument('[repo]', 'the repository', '.'))
    .summary('what the file of a repository asks for, and what of it is not granted')
    .option('--part <name>', 'one of its parts')
    .action(show)
  common(env.command('grant').argument('<repo>', 'path or address, as tasks name it').argument('[host:port...]'))
    .summary('let the environment file of a repository open these')
    .option('--secret <name>', 'give this secret of the platform to set-up; may be repeated', collect)
    .option('--image <name>', 'let its sandboxes have the root file system of this image; may be repeated', collect)
    .option('--cpu <cores>', 'let it ask for this many cores, above its template’s limit')
    .option('--memory <amount>', 'the same for memory: 8Gi')
    .option('--disk <amount>', 'the same for workspace, HOME and /tmp together: 20Gi')
    .addHelpText(
      'after',
      examples('corral env grant . files.example.com:443', 'corral env grant . --secret npm-private'),
    )
    .action(async (repo: string, egress: string[], options: EnvOptions) => {
      const secrets = options.secret ?? []
      const resources = amountsOf(options)
      const images = options.image ?? []
      if (egress.length + secrets.length + images.length + Object.keys(resources).length === 0)
        throw new CliError('nothing to grant', {
          exitCode: 2,
          hint: 'Name host:port, --secret NAME, --image NAME, or an amount such as --memory 8Gi.',
        })
      const words = { egress, secrets, resources, images }
      const grants = await (await grantsOf(options)).grant(absoluteRepo(repo), words).catch(wrongUsage)
      print(grants, options, () => grantedWords(grants))
    })
  common(env.command('revoke').argument('<repo>').argument('[host:port...]', 'without any: everything'))
    .summary('take grants back; tasks that have begun keep theirs')
    .option('--secret <name>', 'take back this secret; may be repeated', collect)
    .option('--image <name>', 'take back this image; may be repeated', collect)
    .option('--cpu', 'take back the grant for cores')
    .option('--memory', 'take back the grant for memory')
    .option('--disk', 'take back the grant for disk')
    .action(async (repo: string, egress: string[], options: EnvOptions) => {
      const secrets = options.secret ?? []
      const words = { egress, secrets, resources: amountsOf(options), images: options.image ?? [] }
      const grants = await (await grantsOf(options)).revoke(absoluteRepo(repo), words)
      print(grants, options, () => grantedWords(grants))
    })
  common(env.command('grants'))
    .summary('what was granted to repositories')
    .action(async (options: EnvOptions) => {
      const grants = await (await grantsOf(options)).list()
      print({ grants }, options, () =>
        grants.length === 0
          ? 'no grants'
          : table(
              ['REPOSITORY', 'EGRESS', 'SECRETS', 'LIMITS', 'IMAGES'],
              grants.map(({ repository, egress, secrets, resources = {}, images = [] }) => [
                repository,
                egress.join(', '),
                secrets.join(', '),
                resourcesText(resources),
                images.join(', '),
              ]),
            ),
      )
    })
  addToolsCommand(env, common)
  addBuildCommands(env)
}

async function validate(given: string, options: EnvOptions): Promise<void> {
  if (options.schema) {
    process.stdout.write(`${JSON.stringify(environmentJsonSchema(), null, 2)}\n`)
    return
  }
  const file = fileAt(given)
  const request = await readRequest(file).catch((error: unknown) => {
    // The problem's own hint is for those who have not come here yet.
    if (!(error instanceof CliError) || !existsSync(file)) throw error
    throw new CliError(error.message, {
      cause: error,
      hint: 'docs/environments.md has every field; `corral env validate --schema` gives editors the schema.',
    })
  })
  print({ file, valid: true, environment: request }, options, () => `${file} is valid`)
}

async function show(given: string, options: EnvOptions): Promise<void> {
  const repository = absoluteRepo(given)
  if (!repository.startsWith('/'))
    throw new CliError(`${given} is an address, not a directory`, {
      exitCode: 2,
      hint: 'Name the directory of a clone: its files are read.',
    })
  const found = /\.ya?ml$/.test(given)
    ? { source: resolve(given), request: await readRequest(resolve(given), options.part), leftOut: [], tools: [] }
    : await readLocalEnvironment(given, options.part)
  const directory = shellQuote(given)
  if (!found)
    throw new CliError(`there is no ${join(resolve(given), environmentFilePath)}`, {
      hint: `Write one with \`corral env init ${directory}\`, or name the file.`,
    })
  const { grantCommand, missingImages, missingResources, missingSecrets, missingWords } = await import('@corral/tasks')
  const { defaultTemplate } = await import('../platform/defaults.js')
  const { source, request, leftOut, tools } = found
  const granted = await (await grantsOf(options)).of(repository)
  const missing = askedEgress(request).filter((rule) => !granted.egress.includes(rule))
  const secrets = missingSecrets(request, granted)
  const resources = missingResources(request, granted, resourcesOfPod(defaultTemplate.spec.podTemplate))
  const images = missingImages(request, granted)
  const notGranted = { egress: missing, secrets, resources, images }
  const value = { repository, source, environment: request, leftOut, tools, granted: granted.egress, missing }
  const line = (label: string, text: string): string => `${`${label}:`.padEnd(19)}${text || 'none'}`
  const built = await builtFor(given, options)
  const more = {
    grantedSecrets: granted.secrets,
    missingSecrets: secrets,
    missingResources: resources,
    missingImages: images,
    ...(built ? { built } : {}),
  }
  print({ ...value, ...more }, options, () =>
    [
      line('from', source),
      ...(built ? [line('built', builtWords(built))] : []),
      line('set-up', request.setup?.replaceAll('\n', `\n${' '.repeat(19)}`) ?? ''),
      line('variables', Object.keys(request.env).join(', ')),
      line('path', request.path.join(', ')),
      line('tools', tools.map(({ name, version, wantedBy }) => `${name} ${version || 'any'} (${wantedBy})`).join(', ')),
      line('services', request.services.map(({ name, use }) => `${name}${use ? ` (${use})` : ''}`).join(', ')),
      line('start', request.start.map(({ run }) => run).join('; ')),
      line('secrets', request.secrets.map(({ name, env }) => `${name} as ${env}`).join(', ')),
      line('image', request.image ?? 'the tools of this machine'),
      line('limits', resourcesText(request.resources ?? {}) || 'the template’s'),
      line('parts', request.parts.join(', ')),
      line('set-up may reach', request.egress.setup.join(', ') || 'nothing'),
      line('agent may reach', request.egress.agent.join(', ') || 'nothing'),
      ...(leftOut.length > 0 ? [line('not used', leftOut.join(', '))] : []),
      ...(missingWords(notGranted).length > 0
        ? [
            line('not granted', missingWords(notGranted).join(', ')),
            `${' '.repeat(19)}${grantCommand(repository, notGranted)}`,
          ]
        : []),
    ].join('\n'),
  )
}

/** What a platform that runs has built for it; where none runs, that is not asked. */
async function builtFor(given: string, options: EnvOptions): Promise<EnvironmentView | undefined> {
  const platform = await findPlatform(options).catch(() => undefined)
  if (!platform) return undefined
  return findEnvironment(tasksClient(platform).environments, given, options).catch(() => undefined)
}

function builtWords({ name, snapshots, ...rest }: EnvironmentView): string {
  const [newest] = snapshots
  const what = newest ? `, ${newest.name} of ${newest.built_at}, ${megabytes(newest.size_bytes)}` : ''
  return `${stateOf({ snapshots, ...rest })}${what} (${name})`
}

/** The file itself, or the one of the repository in this directory. */
function fileAt(given: string): string {
  const path = resolve(given)
  return /\.ya?ml$/.test(path) ? path : join(path, environmentFilePath)
}

async function readRequest(file: string, part?: string): Promise<EnvironmentRequest> {
  if (!existsSync(file))
    throw new CliError(`there is no ${file}`, { hint: 'Write one with `corral env init`, or name the file.' })
  const { parseEnvironmentFile } = await import('@corral/tasks')
  try {
    return parseEnvironmentFile(environmentText(file), file, part)
  } catch (error) {
    throw unusable(error)
  }
}

/** Amounts that were named; `revoke` names them without a value. */
function amountsOf(options: EnvOptions): SandboxResources {
  return Object.fromEntries(
    (['cpu', 'memory', 'disk'] as const).flatMap((name) => (options[name] ? [[name, String(options[name])]] : [])),
  )
}

function grantedWords({ repository, egress, secrets, resources = {}, images = [] }: RepositoryGrants): string {
  const amounts = Object.entries(resources).map(([name, amount]) => `${name} ${amount}`)
  const words = [
    ...egress,
    ...secrets.map((name) => `secret ${name}`),
    ...amounts,
    ...images.map((name) => `image ${name}`),
  ]
  return `granted to ${repository}: ${words.join(', ') || 'nothing'}`
}

function wrongUsage(error: unknown): never {
  const { code, message, hint } = error as { code?: string; message: string; hint?: string }
  if (code !== 'Invalid') throw error
  throw new CliError(message, { exitCode: 2, ...(hint ? { hint } : {}), cause: error })
}

/** Loaded here: with it would come half the platform, which no other command should wait for. */
async function grantsOf(options: EnvOptions): Promise<EnvironmentGrants> {
  const { fileEnvironmentGrants } = await import('@corral/tasks')
  const directory = dataDirectoryOf(options)
  prepareDataDirectory(directory)
  return fileEnvironmentGrants(directory.environmentGrants)
}
