import type { Command } from 'commander'

/** `corral help task list`: as deep as the commands go, and one that is not there is a mistake. Also `corral task help list`. */
export function addHelpCommands(command: Command): void {
  if (command.commands.length === 0) return
  for (const each of command.commands) addHelpCommands(each)
  command
    .command('help')
    .argument('[name...]')
    .summary('display help for command')
    .action((words: string[]) => commandAt(command, words).outputHelp())
}

function commandAt(top: Command, words: readonly string[]): Command {
  let found = top
  for (const word of words) {
    if (found.commands.length === 0) break
    const next = found.commands.find((each) => each.name() === word || each.aliases().includes(word))
    if (!next) found.error(`error: unknown command '${word}'`, { code: 'commander.unknownCommand' })
    else found = next
  }
  return found
}
