import { defaultAgentName, findAgent } from '@corral/agents'
import { type Argument, Command } from 'commander'
import { CliError } from './cli-error.js'
import { addAgentCommand } from './commands/agent.js'
import { addCompletionCommand } from './commands/completion.js'
import { addControllerCommand } from './commands/controller.js'
import { addConvertCommand } from './commands/convert.js'
import { addDoctorCommand } from './commands/doctor.js'
import { addDownCommand } from './commands/down.js'
import { addEndpointCommand } from './commands/endpoint.js'
import { addEnvCommand } from './commands/env.js'
import { addHelpCommands } from './commands/help.js'
import { addImageCommand } from './commands/image.js'
import { addInstallCommand } from './commands/install.js'
import { addKubeconfigCommand } from './commands/kubeconfig.js'
import { addMcpCommand } from './commands/mcp.js'
import { addMeasureCommand } from './commands/measure.js'
import { addOpenCommand } from './commands/open.js'
import { addOrchestrateCommand } from './commands/orchestrate.js'
import { addPartCommands } from './commands/parts.js'
import { addPoolCommand, addTemplateCommand } from './commands/pool.js'
import { addProjectCommand } from './commands/project.js'
import { addProviderCommand } from './commands/provider.js'
import { addRunCommand } from './commands/run.js'
import { addSandboxCommand } from './commands/sandbox.js'
import { addSecretCommand } from './commands/secret.js'
import { addStatusCommand } from './commands/status.js'
import { addTaskCommand } from './commands/task.js'
import { addTaskAnswer } from './commands/task-answer.js'
import { addTaskAttempts } from './commands/task-attempts.js'
import { addTaskOutput } from './commands/task-output.js'
import { addTaskPlan } from './commands/task-plan.js'
import { addTaskSend } from './commands/task-send.js'
import { addTaskShell } from './commands/task-shell.js'
import { addTaskTake } from './commands/task-take.js'
import { addUpCommand } from './commands/up.js'
import { version } from './version.js'

/** Every command with its options, its help and its examples. */
export function buildProgram(): Command {
  const agent = defaultAgentName
  const provider = findAgent(agent)?.speaks?.[0] ?? 'NAME'
  const program = new Command('corral')
    .description('Runs coding agents on tasks, each in its own sandbox, on this machine or in a Kubernetes cluster.')
    .version(version)
    .exitOverride()
    .configureHelp({ commandDescription: (command) => flowing(command.description()) })
    .hook('preAction', (_, command) => {
      refuseEmptyOptions(command)
      refuseEmptyNames(command)
    })
    .addHelpText(
      'after',
      `
Start here, in a git repository:
  corral doctor                                   # what this machine can do
  corral run "Say hello" --command 'echo "$CORRAL_PROMPT" > HELLO.txt'   # any command line is an agent
  corral task list                                # what ran
  corral up -d                                    # a platform that stays, in the background
  corral status                                   # where it is and what it does
  corral down                                     # end it

With a coding agent:
  corral agent install ${agent}                     # from npm, an exact version
  corral secret set ${provider} < key.txt           # stays in the platform
  corral run "Fix the failing test" --agent ${agent}
`,
    )
  addRunCommand(program)
  addUpCommand(program)
  addOpenCommand(program)
  addDownCommand(program)
  addStatusCommand(program)
  const task = addTaskCommand(program)
  addTaskOutput(task)
  addTaskPlan(task)
  addTaskSend(task)
  addTaskAnswer(task)
  addTaskAttempts(task)
  addTaskTake(task)
  addTaskShell(task)
  addProjectCommand(program)
  addSandboxCommand(program)
  addPoolCommand(program)
  addTemplateCommand(program)
  addAgentCommand(program)
  addSecretCommand(program)
  addImageCommand(program)
  addEndpointCommand(program)
  addProviderCommand(program)
  addInstallCommand(program)
  addEnvCommand(program)
  addKubeconfigCommand(program)
  addMcpCommand(program)
  addConvertCommand(program)
  addDoctorCommand(program)
  addOrchestrateCommand(program)
  addMeasureCommand(program)
  addPartCommands(program)
  addControllerCommand(program)
  addCompletionCommand(program)
  addOtherNames(program)
  addHelpCommands(program)
  pointToHelp(program, 'corral')
  // Its own `--version` counts only before a command: `corral agent install NAME --version X` has one too.
  return program.enablePositionalOptions()
}

/** Paragraphs without the line ends of the source, which would stand between those of the terminal. */
function flowing(text: string): string {
  return text.replaceAll(/(?<=\S)\n(?=\S)/g, ' ')
}

/** After wrong usage every command names its own help, not that of the whole program. */
function pointToHelp(command: Command, name: string): void {
  command.showHelpAfterError(`(see \`${name} --help\`)`)
  const text = command.registeredArguments.find(
    (argument) => textArguments.has(argument.name()) || isCommandLine(argument),
  )
  if (text)
    command.configureOutput({ outputError: (error, write) => write(error + textHint(error, name, text.name())) })
  for (const each of command.commands) pointToHelp(each, `${name} ${each.name()}`)
}

/** What kubectl, git and the shell call it, for whoever has those in the fingers; the first one is shown in the help. */
const otherNames: Readonly<Record<string, readonly string[]>> = {
  list: ['ls'],
  rm: ['remove', 'delete'],
  remove: ['rm', 'delete'],
  get: ['show'],
  show: ['get'],
}

/** One verb works for every noun: who has typed `task ls` types `secret ls` next. */
function addOtherNames(command: Command): void {
  for (const each of command.commands) {
    each.aliases(otherNames[each.name()] ?? [])
    addOtherNames(each)
  }
}

/** Arguments that are what a person wrote, with spaces and dashes in it. */
const textArguments: ReadonlySet<string> = new Set(['prompt', 'message'])

/** The command line that `sandbox exec` and `task shell` take. */
function isCommandLine(argument: Argument): boolean {
  return argument.variadic && argument.name() === 'command'
}

/** What to do about such a text that the shell or its first dash took apart. */
function textHint(error: string, name: string, argument: string): string {
  if (argument === 'command')
    return /unknown option (?![\s\S]*Did you mean)/.test(error)
      ? `A command with options of its own goes after \`--\`: ${name} ${name.includes('task') ? 'ID' : 'NAME'} -- ls -la\n`
      : ''
  const example = `${name}${argument === 'prompt' ? ' --repo .' : ' ID'} -- "- and / are swapped"\n`
  if (error.includes('too many arguments'))
    return `Put the ${argument} into quotes, and options before a \`--\`: ${example}`
  // An option that is only mistyped has no space in it.
  if (/unknown option '-[\s\S]*\s[\s\S]*'/.test(error))
    return `A ${argument} that begins with a dash goes last, after \`--\`: ${example}`
  return ''
}

/** An option with an empty value is most often a variable of a script that was not set; taken for none it would do the wrong thing. */
function refuseEmptyOptions(command: Command): void {
  for (const option of command.options) {
    const name = option.attributeName()
    if (command.getOptionValueSource(name) !== 'cli' || ![command.getOptionValue(name)].flat().includes('')) continue
    throw new CliError(`${option.long ?? option.short} is empty`, {
      exitCode: 2,
      hint: 'Give it a value, or leave the option out.',
    })
  }
}

/** Arguments that may be empty, or say it in words of their own: texts, and the words of a command line. */
const mayBeEmpty: ReadonlySet<string> = new Set([...textArguments, 'remark', 'answer', 'command'])

/** The same for an argument: an empty id would address the whole list, an empty directory the one we are in. */
function refuseEmptyNames(command: Command): void {
  for (const [index, argument] of command.registeredArguments.entries()) {
    const name = argument.name()
    if (mayBeEmpty.has(name) || ![command.processedArgs[index]].flat().includes('')) continue
    throw new CliError(`the argument <${name}> is empty`, {
      exitCode: 2,
      hint: 'Give it a value; a variable of the shell that stands there may not be set.',
    })
  }
}
