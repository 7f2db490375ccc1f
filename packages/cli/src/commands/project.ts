import { readFileSync } from 'node:fs'
import type { CreateProjectRequest, ProjectSettings, ProjectsClient, ProjectView } from '@corral/protocol'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { editText } from '../client/edit-text.js'
import { ensurePlatform, requirePlatform } from '../client/find-platform.js'
import { tasksClient } from '../client/tasks.js'
import { table } from '../output/table.js'
import { identityFrom } from '../platform/identity-option.js'
import { checksRequest } from './check-options.js'
import { age, type CommonOptions, examples, print, readStdin, say, withPlatform } from './common.js'
import { agentFrom, changesFrom, parseAssignment, projectYaml, settingsFromYaml } from './project-settings.js'
import { removeEach } from './remove-each.js'
import { absoluteRepo } from './task-request.js'

interface CreateOptions extends CommonOptions {
  repo?: string
  base?: string
  agent?: string
  command?: string
  model?: string
  instructions?: string
  author?: string
  setup?: string
  check?: string[]
  allow?: string[]
  set?: string[]
  file?: string
}

const collect = (value: string, all: string[] = []): string[] => [...all, value]

/** `corral project`: settings that tasks get by naming a project. */
export function addProjectCommand(program: Command): void {
  const project = program
    .command('project')
    .summary('settings that tasks on one repository share')
    .description(
      'A project holds what tasks have in common: repository, agent, instructions, author, set-up, checks, network. A task\nnames it (`corral run --project NAME`) and gets what it does not say itself. Tasks that exist keep what they got.',
    )
    .addHelpText(
      'after',
      examples(
        'corral project create demo --repo . --command \'echo "$CORRAL_PROMPT" >> NOTES.md\' --check "test=test -f NOTES.md"',
        'corral run "Say hello" --project demo',
        'corral project edit demo --set "author=Jane Doe <jane@example.com>" --set instructions="Write short sentences."',
        'corral project get demo',
        'corral task list --project demo',
        'corral project rm demo',
      ),
    )
  addCreate(project)
  addEdit(project)

  withPlatform(project.command('list'))
    .summary('projects')
    .action(async (options: CommonOptions) => {
      print(await (await connect(options)).list(), options, ({ projects }) =>
        projects.length === 0 ? 'no projects' : projectTable(projects),
      )
    })

  withPlatform(project.command('get').argument('<name>'))
    .summary('one project, as YAML')
    .action(async (name: string, options: CommonOptions) => {
      const found = await (await connect(options)).get(name)
      print(found, options, (view) => `# project ${view.name}\n${projectYaml(view)}`.trimEnd())
    })

  withPlatform(project.command('rm').argument('<name...>'))
    .summary('remove projects; their tasks stay')
    .action(async (names: string[], options: CommonOptions) => {
      const client = await connect(options)
      await removeEach(names, options, async (name) => void (await client.remove(name)))
    })
}

function addCreate(project: Command): void {
  withPlatform(project.command('create').argument('<name>', 'lower-case letters, digits and dashes'))
    .summary('make a project')
    .option('--repo <path-or-url>', 'repository its tasks work on')
    .option('--base <name>', 'branch its tasks start from')
    .option('--agent <name>', 'agent that does the work')
    .option('--command <cmd>', 'command line of the agents command and acp')
    .option('--model <name>', 'model of the agent')
    .option('--instructions <text>', 'said to the agent before what the task says')
    .option('--author <"name <email>">', 'author of commits')
    .option('--setup <cmd>', 'command to run before the agent')
    .option('--check <[name=]cmd>', 'run this after the agent; may be repeated', collect)
    .option('--allow <host:port>', 'let tasks reach this address; may be repeated', collect)
    .option('--set <name=value>', 'any other setting, its value as YAML; may be repeated', collect)
    .option('-f, --file <file>', 'settings from a YAML file; - is standard input')
    .addHelpText(
      'after',
      examples(
        'corral project create notes --repo . --set agent.name=command --set agent.command="date >> NOTES.md"',
        "corral project get notes | corral project create copy -f - --set 'description=the same again'",
        'corral project rm notes copy',
      ),
    )
    .action(async (name: string, options: CreateOptions) => {
      const request = { name, ...(await settingsFrom(options)) }
      const { projects } = tasksClient(await ensurePlatform(options, say))
      print(await projects.create(request), options, (made) => `created project ${made.name}`)
    })
}

/** Flags win over `--set`, which wins over the file. */
async function settingsFrom(options: CreateOptions): Promise<Omit<CreateProjectRequest, 'name'>> {
  const fromFile = options.file === undefined ? {} : await settingsIn(options.file)
  const fromSet = changesFrom((options.set ?? []).map(parseAssignment), fromFile as Partial<ProjectView>)
  const agent = agentFrom(options)
  const { checks } = checksRequest(options)
  const flags: ProjectSettings = {
    ...(options.repo ? { repo: absoluteRepo(options.repo) } : {}),
    ...(options.base ? { base_branch: options.base } : {}),
    ...(agent ? { agent } : {}),
    ...(options.instructions ? { instructions: options.instructions } : {}),
    ...(options.author ? { author: identityFrom('--author', options.author) } : {}),
    ...(options.setup ? { setup: options.setup } : {}),
    ...(checks ? { checks } : {}),
    ...(options.allow ? { egress: options.allow } : {}),
  }
  const all = { ...fromFile, ...fromSet, ...flags }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null)) as ProjectSettings
}

function addEdit(project: Command): void {
  withPlatform(project.command('edit').argument('<name>'))
    .summary('change a project in your editor, or with --set')
    .description(
      'Opens the settings in $EDITOR. With --set, single ones change; an empty value takes one away. A change\nthat another user saved meanwhile is not overwritten.',
    )
    .option('--set <name=value>', 'the new value of a setting, as YAML; may be repeated', collect)
    .option('-f, --file <file>', 'all settings anew from a YAML file; - is standard input')
    .addHelpText(
      'after',
      examples(
        'corral project create site --repo .',
        'corral project edit site --set setup="echo ready" --set egress="[packages]"',
        'corral project edit site --set egress=',
        'corral project rm site',
      ),
    )
    .action(async (name: string, options: CommonOptions & { set?: string[]; file?: string }) => {
      if (options.set && options.file !== undefined)
        throw new CliError('give --set or --file, not both', { exitCode: 2 })
      const client = await connect(options)
      const changed = await edit(client, name, options)
      if (!changed) print({ name, changed: false }, options, () => `project ${name} stays as it is`)
      else print(changed, options, () => `changed project ${name}`)
    })
}

/** Undefined where nothing was changed in the editor. */
async function edit(
  client: ProjectsClient,
  name: string,
  options: { set?: string[]; file?: string },
): Promise<ProjectView | undefined> {
  if (options.set) {
    const assignments = options.set.map(parseAssignment)
    const current = await client.get(name)
    const { resource_version } = current
    return client.change(name, { ...changesFrom(assignments, current), resource_version })
  }
  if (options.file !== undefined) return client.replace(name, await settingsIn(options.file))
  const current = await client.get(name)
  const before = `# Settings of project ${name}; a line that is taken away is unset.\n${projectYaml(current)}`
  const edited = editText(`${name}.yaml`, before)
  try {
    const changed =
      edited.text === before
        ? undefined
        : await client.replace(name, {
            ...settingsFromYaml(edited.text, edited.path),
            resource_version: current.resource_version,
          })
    edited.remove()
    return changed
  } catch (error) {
    const { message } = error as Error
    throw new CliError(`project ${name} was not changed: ${message.replace(`${edited.path}: `, '')}`, {
      hint: `What you wrote is in ${edited.path}: \`corral project edit ${name} -f FILE\` takes it.`,
      exitCode: 2,
      cause: error,
    })
  }
}

async function settingsIn(file: string): Promise<ProjectSettings> {
  if (file === '-') return settingsFromYaml(await readStdin(), 'standard input')
  try {
    return settingsFromYaml(readFileSync(file, 'utf8'), file)
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError(`${file} cannot be read: ${(error as Error).message}`, { exitCode: 2, cause: error })
  }
}

function projectTable(projects: readonly ProjectView[]): string {
  const rows = projects.map((project) => [
    project.name,
    project.repo ?? '',
    project.base_branch ?? '',
    project.agent?.name ?? '',
    age(project.created_at),
    project.description ?? '',
  ])
  return table(['NAME', 'REPO', 'BASE', 'AGENT', 'AGE', 'DESCRIPTION'], rows)
}

async function connect(options: CommonOptions): Promise<ProjectsClient> {
  return tasksClient(await requirePlatform(options)).projects
}
