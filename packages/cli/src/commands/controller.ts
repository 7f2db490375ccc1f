import type { Command } from 'commander'

/** `corral controller`: its flags are Go's, as upstream's, so commander only passes them on, `--help` included. */
export function addControllerCommand(program: Command): void {
  program
    .command('controller')
    .summary('only the Agent Sandbox controllers, for any API server')
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .action(async (_options: object, command: Command) =>
      (await import('../platform/controller.js')).runController(command.args),
    )
}
