import { existsSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { type EnvironmentsClient, type EnvironmentView, environmentFilePath, type TaskEvent } from '@corral/protocol'
import { isFinalPhase } from '@corral/resources/task-words'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { ensurePlatform, requirePlatform } from '../client/find-platform.js'
import { tasksClient } from '../client/tasks.js'
import { shellQuote } from '../output/shell-quote.js'
import { table } from '../output/table.js'
import { terminalText } from '../output/terminal-text.js'
import { age, type CommonOptions, examples, print, say, withPlatform } from './common.js'
import { currentBranch, defaultBranch, isLocal, isUncommitted } from './env-ref.js'
import { environmentShell } from './env-shell.js'
import { absoluteRepo } from './task-request.js'

interface BuildOptions extends CommonOptions {
  ref?: string
  part?: string
  cache?: boolean
  failed?: boolean
  all?: boolean
  olderThan?: string
}

const lookEveryMs = 300
const dayMs = 24 * 60 * 60_000

/** `corral env build|list|test|prune|shell`: what tasks find set up. */
export function addBuildCommands(env: Command): void {
  onRepository(env.command('build'))
    .summary('build the environment of a branch, once for all tasks on it')
    .description(
      'Sets the branch up in a sandbox of its own, with the network set-up may have, and keeps what that leaves in the\nrepository and the home directory. Tasks get it in milliseconds. The first task does the same by itself.',
    )
    .option('--no-cache', 'build although nothing has changed since the last build')
    .addHelpText('after', examples('corral env build', 'corral env build . --part web --no-cache'))
    .action(build)
  withPlatform(env.command('list'))
    .summary('environments, what they have built and what it takes on the disk')
    .action(async (options: BuildOptions) => {
      const { environments } = await connect(options).then((client) => client.list())
      print({ environments }, options, () => (environments.length === 0 ? 'no environments' : listed(environments)))
    })
  onRepository(env.command('test'))
    .summary('run the checks of the environment file as a task would, without network')
    .description('Exit code 0: all of them passed.')
    .action(test)
  withPlatform(env.command('prune').argument('[environment...]', 'these, whatever their age'))
    .summary('remove environments that no task uses any more, with what they have built')
    .description(
      'Without names: those whose repository is no longer on this machine, and those no task has used for a month. What a\nsandbox has at the moment goes when the sandbox does. The next task on such a repository builds it anew.',
    )
    .option('--older-than <days>', 'unused for this many days', '30')
    .option('--all', 'all of them')
    .addHelpText('after', examples('corral env prune --older-than 7', 'corral env prune --all'))
    .action(prune)
  onRepository(env.command('shell'))
    .summary('a terminal in what was built, or in a build that failed')
    .description(
      'With the variables, toolchains, image and limits it was built with, and no network. Services do not run in it.\nWhat you change in there is gone when the shell ends.',
    )
    .option('--failed', 'in the sandbox of the last build, which is kept for a quarter of an hour when it fails')
    .option('-n, --namespace <name>', 'namespace', 'corral')
    .addHelpText('after', examples('corral env shell', 'corral env shell . --failed'))
    .action(async (given: string, options: BuildOptions & { namespace: string }) => {
      const platform = await requirePlatform(options)
      const environment = await requireEnvironment(tasksClient(platform).environments, given, options)
      await environmentShell(platform, environment, options)
    })
}

function onRepository(command: Command): Command {
  return withPlatform(command.argument('[repo]', 'path or address, or the name of an environment', '.'))
    .option('--ref <branch>', 'the branch (default: the one that is checked out; of an address its default branch)')
    .option('--part <name>', 'one of the parts of its environment file')
}

async function connect(options: BuildOptions): Promise<EnvironmentsClient> {
  return tasksClient(await requirePlatform(options)).environments
}

/** The environment of a repository, by its path or address, or by its own name. */
export async function findEnvironment(
  client: EnvironmentsClient,
  given: string,
  options: BuildOptions,
): Promise<EnvironmentView | undefined> {
  const { environments } = await client.list()
  const named = environments.find(({ name }) => name === given)
  if (named) return named
  const repo = absoluteRepo(given)
  const ref = options.ref ?? (isLocal(repo) ? await currentBranch(repo) : undefined)
  return environments.find(
    (each) => each.repo === repo && each.part === options.part && (ref === undefined || each.ref === ref),
  )
}

async function requireEnvironment(
  client: EnvironmentsClient,
  given: string,
  options: BuildOptions,
): Promise<EnvironmentView> {
  const found = await findEnvironment(client, given, options)
  if (found) return found
  throw new CliError(`nothing was built for ${given}`, {
    hint: `Build it with \`corral env build ${shellQuote(given)}\`; \`corral env list\` has what there is.`,
  })
}

async function build(given: string, options: BuildOptions): Promise<void> {
  const { environments: client } = tasksClient(await ensurePlatform(options, say))
  const known = (await client.list()).environments.find(({ name }) => name === given)
  const repo = known?.repo ?? absoluteRepo(given)
  if (isLocal(repo) && (await isUncommitted(repo, environmentFilePath)))
    say(`${environmentFilePath} is not committed as it is here; the build reads it from the branch`)
  const noCache = options.cache === false ? { no_cache: true } : {}
  const started = known
    ? await client.rebuild(known.name, noCache)
    : await client.build({ ...(await requestOf(given, options)), ...noCache })
  const before = known?.build?.number ?? 0
  const ended = await follow(client, started, before, options.json === true)
  const { cause, snapshot } = ended.build ?? {}
  if (options.json) process.stdout.write(`${JSON.stringify(ended, null, 2)}\n`)
  if (cause) {
    process.exitCode = 1
    if (!options.json)
      throw new CliError(`the build failed: ${cause.code}: ${cause.message}`, {
        hint: [
          cause.hint,
          ended.build?.sandbox && `Look around in what it left: \`corral env shell ${ended.name} --failed\``,
        ]
          .filter(Boolean)
          .join(' '),
      })
    return
  }
  const made = ended.snapshots.find(({ name }) => name === snapshot)
  if (!options.json)
    process.stdout.write(
      `${ended.name}: snapshot ${snapshot ?? ''}${made ? `, ${made.files} files, ${megabytes(made.size_bytes)}` : ''}\n`,
    )
}

async function requestOf(given: string, options: BuildOptions) {
  const repo = absoluteRepo(given)
  const ref = options.ref ?? (isLocal(repo) ? undefined : await defaultBranch(repo))
  return { repo, ...(ref ? { ref } : {}), ...(options.part ? { part: options.part } : {}) }
}

/** Prints what the build says until it has ended. */
async function follow(
  client: EnvironmentsClient,
  { name, build: first }: EnvironmentView,
  before: number,
  isQuiet: boolean,
): Promise<EnvironmentView> {
  const isRunning = first?.state === 'Starting' || first?.state === 'Running'
  const wanted = isRunning ? (first?.number ?? 1) : Math.max(before, first?.number ?? 0) + 1
  let number = 0
  let after = 0
  for (;;) {
    const { build: current, events } = await client.events(name, after)
    if (current && current.number >= wanted) {
      if (current.number !== number) {
        if (!isQuiet) say(`build ${current.number} of ${name}`)
        if (number !== 0 || after !== 0) {
          ;[number, after] = [current.number, 0]
          continue
        }
        number = current.number
      }
      for (const event of events) {
        after = event.sequence
        if (!isQuiet) show(event)
      }
      const isOver = current.state === 'Succeeded' || current.state === 'Failed'
      if (isOver && events.length === 0) return client.get(name)
      if (events.length > 0) continue
    }
    await setTimeout(lookEveryMs)
  }
}

function show(event: TaskEvent): void {
  if (event.type === 'output') process.stderr.write(terminalText(event.text, process.stderr.isTTY === true))
  else if (event.type === 'warning') say(event.message)
  else if (event.type === 'stage' && event.detail) say(event.detail)
}

function listed(environments: readonly EnvironmentView[]): string {
  return table(
    ['NAME', 'REPOSITORY', 'REF', 'PART', 'STATE', 'SNAPSHOTS', 'SIZE', 'BUILT', 'USED'],
    environments.map(({ name, repo, ref = '', part = '', snapshots, ...rest }) => {
      const bytes = snapshots.reduce((sum, { size_bytes }) => sum + size_bytes, 0)
      const [newest] = snapshots
      const used = snapshots
        .flatMap(({ last_used_at }) => last_used_at ?? [])
        .sort()
        .at(-1)
      return [
        ...[name, repo, ref, part, stateOf({ snapshots, ...rest }), String(snapshots.length), megabytes(bytes)],
        ...[newest ? age(newest.built_at) : '', used ? age(used) : ''],
      ]
    }),
  )
}

/** One word for how it stands. */
export function stateOf({
  build: last,
  stale,
  snapshots,
}: Pick<EnvironmentView, 'build' | 'stale' | 'snapshots'>): string {
  if (last?.state === 'Starting' || last?.state === 'Running') return 'building'
  if (last?.state === 'Failed') return `failed (${last.cause?.code ?? ''})`
  if (snapshots.length === 0) return 'not built'
  return stale ? 'stale' : 'built'
}

export const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`

/** A task whose agent does nothing: what judges its work then judges the branch as it is. */
async function test(given: string, options: BuildOptions): Promise<void> {
  const client = tasksClient(await ensurePlatform(options, say))
  const named = await findEnvironment(client.environments, given, options)
  const repo = named?.repo ?? absoluteRepo(given)
  const base = options.ref ?? named?.ref
  const part = options.part ?? named?.part
  const { id } = await client.create({
    repo,
    task: 'Run the checks of the environment.',
    agent: { name: 'command', command: 'true' },
    check_rounds: 0,
    on_failed_checks: 'no-push',
    ...(base ? { base_branch: base } : {}),
    ...(part ? { part } : {}),
  })
  let view = await client.get(id)
  while (!isFinalPhase(view.status)) {
    await setTimeout(lookEveryMs)
    view = await client.get(id)
  }
  const results = view.checks?.rounds?.at(-1)?.results ?? []
  const passed = view.status === 'SUCCEEDED'
  process.exitCode = passed ? 0 : 1
  print({ task: id, passed, checks: results, ...(view.cause ? { cause: view.cause } : {}) }, options, () => {
    const rows = results.map(({ name, outcome, duration_ms, output }) =>
      [
        `${outcome === 'passed' ? '✓' : '✗'} ${name}  ${outcome}, ${(duration_ms / 1000).toFixed(1)} s`,
        outcome === 'passed' ? '' : (output ?? ''),
      ]
        .filter(Boolean)
        .join('\n'),
    )
    if (rows.length > 0) return rows.join('\n')
    return view.cause
      ? [`${view.cause.code}: ${view.cause.message}`, view.cause.hint && `hint: ${view.cause.hint}`]
          .filter(Boolean)
          .join('\n')
      : 'there is nothing to check: name commands under `checks` in .corral/environment.yaml'
  })
}

async function prune(names: string[], options: BuildOptions): Promise<void> {
  const client = await connect(options)
  const days = Number(options.olderThan ?? '30')
  if (!Number.isFinite(days) || days < 0)
    throw new CliError(`"${options.olderThan ?? ''}" is no number of days`, { exitCode: 2 })
  const { environments } = await client.list()
  const unknown = names.find((name) => environments.every((each) => each.name !== name))
  if (unknown !== undefined)
    throw new CliError(`there is no environment "${unknown}"`, { hint: '`corral env list` has them.' })
  const going = environments.filter((each) =>
    names.length > 0 ? names.includes(each.name) : options.all === true || isAbandoned(each, days),
  )
  for (const { name } of going) await client.remove(name)
  const bytes = going.flatMap(({ snapshots }) => snapshots).reduce((sum, { size_bytes }) => sum + size_bytes, 0)
  print({ removed: going.map(({ name }) => name), bytes }, options, () =>
    going.length === 0
      ? 'nothing to remove'
      : [
          ...going.map(({ name, repo }) => `removed ${name} (${repo}), gone when no sandbox has it any more`),
          `${megabytes(bytes)} on the disk`,
        ].join('\n'),
  )
}

function isAbandoned({ repo, snapshots, build: last, created_at }: EnvironmentView, days: number): boolean {
  if (last?.state === 'Starting' || last?.state === 'Running') return false
  if (isLocal(repo) && !existsSync(repo)) return true
  const times = [created_at, last?.finished_at, ...snapshots.flatMap((each) => [each.built_at, each.last_used_at])]
  const latest = Math.max(...times.flatMap((time) => (time ? [Date.parse(time)] : [])))
  return Date.now() - latest > days * dayMs
}
