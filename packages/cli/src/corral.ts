import { Command, CommanderError } from 'commander'
import pc from 'picocolors'
import { CliError } from './cli-error.js'
import { addAgentCommand } from './commands/agent.js'
import { addControllerCommand } from './commands/controller.js'
import { addConvertCommand } from './commands/convert.js'
import { addDoctorCommand } from './commands/doctor.js'
import { addMeasureCommand } from './commands/measure.js'
import { addOrchestrateCommand } from './commands/orchestrate.js'
import { addPartCommands } from './commands/parts.js'
import { addRunCommand } from './commands/run.js'
import { addSandboxCommand } from './commands/sandbox.js'
import { addSecretCommand } from './commands/secret.js'
import { addTaskCommand } from './commands/task.js'
import { addTaskShell } from './commands/task-shell.js'
import { addUpCommand } from './commands/up.js'
import { version } from './version.js'

function buildProgram(): Command {
  const program = new Command('corral')
    .description('Runs coding agents on tasks, each in its own sandbox, on this machine or in a Kubernetes cluster.')
    .version(version)
    .exitOverride()
    .addHelpText(
      'after',
      '\nStart here:\n  corral run "Fix the failing test" --repo .     one task, to its branch\n  corral up                                       the platform, in the foreground\n  corral doctor                                   what this machine can do\n',
    )
  addRunCommand(program)
  addUpCommand(program)
  addTaskShell(addTaskCommand(program))
  addSandboxCommand(program)
  addAgentCommand(program)
  addSecretCommand(program)
  addConvertCommand(program)
  addDoctorCommand(program)
  addOrchestrateCommand(program)
  addMeasureCommand(program)
  addPartCommands(program)
  addControllerCommand(program)
  pointToHelp(program, 'corral')
  return program
}

/** After wrong usage every command names its own help, not that of the whole program. */
function pointToHelp(command: Command, name: string): void {
  command.showHelpAfterError(`(see \`${name} --help\`)`)
  for (const each of command.commands) pointToHelp(each, `${name} ${each.name()}`)
}

async function main(): Promise<void> {
  try {
    await buildProgram().parseAsync(process.argv)
  } catch (error) {
    process.exitCode = report(error)
  }
}

/** The next move without a cluster to talk to. The packages that find this out do not know this command line. */
const clusterHint = 'Start a platform with `corral up`, name its --data-dir, or give a cluster with --kubeconfig.'

/** One line and the next move; a stack only for what should not happen. */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const { message, code, ...known } = error as { message?: string; hint?: string; code?: string }
  const hasNoCluster = code === 'KubeConfigNotFound' || code === 'KubeConfigInvalid'
  const hint = known.hint ?? (hasNoCluster ? clusterHint : undefined)
  if (error instanceof CliError || code !== undefined) {
    process.stderr.write(`${pc.red('corral:')} ${message}\n${hint ? `${pc.yellow('hint:')} ${hint}\n` : ''}`)
    return error instanceof CliError ? error.exitCode : hasNoCluster ? 3 : 1
  }
  process.stderr.write(`${pc.red('corral:')} ${error instanceof Error ? error.stack : String(error)}\n`)
  return 1
}

void main()
