import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { askedEgress, type EnvironmentRequest, environmentFilePath, environmentJsonSchema } from '@corral/protocol'
import type { EnvironmentGrants } from '@corral/tasks'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { detectSetup, environmentFileText } from '../environment/detect-setup.js'
import { shellQuote } from '../output/shell-quote.js'
import { dataDirectoryOf, prepareDataDirectory } from '../platform/data-directory.js'
import { examples, print, table } from './common.js'
import { absoluteRepo } from './task-request.js'

interface EnvOptions {
  dataDir?: string
  json?: boolean
  force?: boolean
  schema?: boolean
}

export function addEnvCommand(program: Command): void {
  const env = program
    .command('env')
    .summary('what a repository needs: its set-up, variables and network')
    .description(
      `A repository says in ${environmentFilePath} how it is set up. It may use the package mirror; what else of the network\nit asks for, you grant. Tasks read the file from the commit they start from, never from an agent's own.`,
    )
  const common = (command: Command): Command =>
    command.option('--data-dir <dir>', 'data directory of the platform').option('--json', 'print JSON')

  common(env.command('init').argument('[directory]', 'the repository', '.'))
    .summary(`write ${environmentFilePath} from lock files`)
    .option('--force', 'replace a file that is there')
    .addHelpText('after', examples('corral env init', 'corral env init ../service --force'))
    .action(init)
  common(env.command('validate').argument('[file]', 'the file, or the repository it is in', '.'))
    .summary('check an environment file')
    .option('--schema', 'print the JSON Schema of the file instead, for editors')
    .addHelpText('after', examples('corral env validate', 'corral env validate --schema > environment.schema.json'))
    .action(validate)
  common(env.command('show').argument('[repo]', 'the repository', '.'))
    .summary('what the file of a repository asks for, and what of it is not granted')
    .action(show)
  common(env.command('grant').argument('<repo>', 'path or address, as tasks name it').argument('<host:port...>'))
    .summary('let the environment file of a repository open these')
    .addHelpText('after', examples('corral env grant . files.example.com:443'))
    .action(async (repo: string, rules: string[], options: EnvOptions) => {
      const grants = await (await grantsOf(options)).grant(absoluteRepo(repo), rules).catch(wrongUsage)
      print(grants, options, () => `granted to ${grants.repository}: ${grants.egress.join(', ')}`)
    })
  common(env.command('revoke').argument('<repo>').argument('[host:port...]', 'without any: everything'))
    .summary('take grants back; tasks that have begun keep theirs')
    .action(async (repo: string, rules: string[], options: EnvOptions) => {
      const grants = await (await grantsOf(options)).revoke(absoluteRepo(repo), rules)
      print(grants, options, () => `granted to ${grants.repository}: ${grants.egress.join(', ') || 'nothing'}`)
    })
  common(env.command('grants'))
    .summary('what was granted to repositories')
    .action(async (options: EnvOptions) => {
      const grants = await (await grantsOf(options)).list()
      print({ grants }, options, () =>
        grants.length === 0
          ? 'no grants'
          : table(
              ['REPOSITORY', 'EGRESS'],
              grants.map(({ repository, egress }) => [repository, egress.join(', ')]),
            ),
      )
    })
}

function init(directory: string, options: EnvOptions): void {
  const file = join(resolve(directory), environmentFilePath)
  if (existsSync(file) && !options.force)
    throw new CliError(`${file} is there already`, { hint: 'Change it by hand, or replace it with --force.' })
  const detected = detectSetup(new Set(namesIn(resolve(directory))))
  if (detected.length === 0)
    throw new CliError(`${resolve(directory)} has no lock file that is known here`, {
      hint: `Write ${environmentFilePath} by hand: docs/environments.md has its fields.`,
    })
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, environmentFileText(detected))
  print({ file, detected }, options, () =>
    [
      `wrote ${file}, from ${detected.map(({ because }) => because).join(', ')}`,
      'Commit it, then try it: corral run "Run the tests" --agent NAME',
    ].join('\n'),
  )
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch (error) {
    throw new CliError(`${directory} cannot be read`, { cause: error, hint: 'Name the directory of a repository.' })
  }
}

async function validate(given: string, options: EnvOptions): Promise<void> {
  if (options.schema) {
    process.stdout.write(`${JSON.stringify(environmentJsonSchema(), null, 2)}\n`)
    return
  }
  const file = fileAt(given)
  const request = await readRequest(file)
  print({ file, valid: true, environment: request }, options, () => `${file} is valid`)
}

async function show(given: string, options: EnvOptions): Promise<void> {
  const repository = absoluteRepo(given)
  const request = await readRequest(fileAt(given))
  const granted = await (await grantsOf(options)).egressOf(repository)
  const missing = askedEgress(request).filter((rule) => !granted.includes(rule))
  print({ repository, environment: request, granted, missing }, options, () =>
    [
      `set-up:        ${request.setup?.replaceAll('\n', '\n               ') ?? 'none'}`,
      `variables:     ${Object.keys(request.env).join(', ') || 'none'}`,
      `path:          ${request.path.join(', ') || 'none'}`,
      `set-up may reach:  ${request.egress.setup.join(', ') || 'nothing'}`,
      `agent may reach:   ${request.egress.agent.join(', ') || 'nothing'}`,
      ...(missing.length > 0
        ? [
            `not granted:   ${missing.join(', ')}`,
            `               corral env grant ${shellQuote(repository)} ${missing.map(shellQuote).join(' ')}`,
          ]
        : []),
    ].join('\n'),
  )
}

/** The file itself, or the one of the repository in this directory. */
function fileAt(given: string): string {
  const path = resolve(given)
  return /\.ya?ml$/.test(path) ? path : join(path, environmentFilePath)
}

async function readRequest(file: string): Promise<EnvironmentRequest> {
  if (!existsSync(file))
    throw new CliError(`there is no ${file}`, { hint: 'Write one with `corral env init`, or name the file.' })
  const { parseEnvironmentFile } = await import('@corral/tasks')
  try {
    return parseEnvironmentFile(readFileSync(file, 'utf8'), file)
  } catch (error) {
    throw new CliError((error as Error).message, { cause: error, hint: 'docs/environments.md has every field.' })
  }
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
