import { Argument, type Command } from 'commander'

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

/** `corral completion`: a script that completes commands and options, made from the commands themselves. */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'your shell').choices(shells))
    .summary('a completion script for your shell')
    .description('Prints a script that completes commands and options.')
    .addHelpText(
      'after',
      `
Examples:
  source <(corral completion bash)

To have it in every shell:
  bash  echo 'source <(corral completion bash)' >> ~/.bashrc
  zsh   corral completion zsh > "\${fpath[1]}/_corral"
  fish  corral completion fish > ~/.config/fish/completions/corral.fish
`,
    )
    .action((shell: Shell) => {
      process.stdout.write(completionScript(shell, completionsOf(program)))
    })
}

/** What may follow one command: its subcommands, the values of its first argument where they are known, its options. */
interface Completions {
  /** `task list`; empty for the program itself. */
  path: string
  commands: { name: string; summary: string }[]
  values: readonly string[]
  options: { flags: string[]; takesValue: boolean; choices: readonly string[]; description: string }[]
}

export function completionsOf(command: Command, path = ''): Completions[] {
  const commands = command.commands.map((each) => ({ name: each.name(), summary: each.summary() }))
  const options = command
    .createHelp()
    .visibleOptions(command)
    .map((option) => ({
      flags: [option.long, option.short].filter((flag) => flag !== undefined),
      takesValue: option.required || option.optional,
      choices: option.argChoices ?? [],
      description: option.description,
    }))
  const below = command.commands.flatMap((each) => completionsOf(each, `${path} ${each.name()}`.trim()))
  const values = command.registeredArguments[0]?.argChoices ?? []
  return [{ path, commands, values, options }, ...below]
}

export function completionScript(shell: Shell, all: readonly Completions[]): string {
  return shell === 'fish' ? fishScript(all) : shellScript(shell, all)
}

/** bash and zsh share the walk along the words that were typed. */
function shellScript(shell: 'bash' | 'zsh', all: readonly Completions[]): string {
  const words = (entry: Completions): string =>
    [...entry.commands.map(({ name }) => name), ...entry.values, ...entry.options.flatMap(({ flags }) => flags)].join(
      ' ',
    )
  const paths = all.filter(({ path }) => path !== '').map(({ path }) => `"${path}"`)
  // Where a command is to follow, or a value that is known, no file is.
  const known = (entry: Completions): string => (entry.commands.length + entry.values.length > 0 ? 'value=known ' : '')
  const cases = all.map((entry) => `    "${entry.path}") ${known(entry)}candidates="${words(entry)}" ;;`).join('\n')
  const valued = [
    ...new Set(
      all.flatMap(({ options }) => options.filter(({ takesValue }) => takesValue)).flatMap(({ flags }) => flags),
    ),
  ]
  const choices = all.flatMap(({ path, options }) =>
    options
      .filter((option) => option.choices.length > 0)
      .map((option) => {
        const patterns = option.flags.map((flag) => `"${path} ${flag}"`).join('|')
        return `    ${patterns}) value=known candidates="${option.choices.join(' ')}" ;;`
      }),
  )
  // `path` and `words` are special in zsh.
  const walk = `  local at="" word candidates="" value=""
  for word in "\${typed[@]}"; do
    case "\${at:+$at }$word" in
      ${paths.join('|')}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at" in
${cases}
  esac
  case "$previous" in
    ${valued.join('|')}) value=any candidates="" ;;
  esac
  case "$at $previous" in
${choices.join('\n')}
  esac`
  if (shell === 'bash')
    return `# bash completion of corral
_corral() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  local typed=("\${COMP_WORDS[@]:1:COMP_CWORD-1}")
${walk}
  COMPREPLY=($(compgen -W "$candidates" -- "$current"))
  [ "\${#COMPREPLY[@]}" -gt 0 ] || [ "$value" = known ] || { local IFS=$'\\n'; COMPREPLY=($(compgen -f -- "$current")); }
}
complete -o filenames -F _corral corral
`
  return `#compdef corral
_corral() {
  local previous="\${words[CURRENT-1]}"
  local -a typed
  typed=("\${(@)words[2,CURRENT-1]}")
${walk}
  compadd -- \${=candidates}
  [ "$value" = known ] || _files
}
if [ "$funcstack[1]" = _corral ]; then _corral "$@"; else compdef _corral corral; fi
`
}

function fishScript(all: readonly Completions[]): string {
  const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = all.flatMap(({ path, commands, values, options }) => {
    const parts = path.split(' ').filter((part) => part !== '')
    const seen = parts.map((part) => `__fish_seen_subcommand_from ${part}`)
    const others = commands.map(({ name }) => name).join(' ')
    const here = [...seen, ...(others ? [`not __fish_seen_subcommand_from ${others}`] : [])].join('; and ')
    return [
      ...commands.map(({ name, summary }) => `complete -c corral -f -n ${quote(here)} -a ${name} -d ${quote(summary)}`),
      ...values.map((value) => `complete -c corral -f -n ${quote(here)} -a ${value}`),
      ...options.map(({ flags, takesValue, choices, description }) => {
        const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`))
        const when = seen.length > 0 ? ` -n ${quote(seen.join('; and '))}` : ''
        return `complete -c corral${when} ${names.join(' ')}${takesValue ? ' -r' : ''}${choices.length > 0 ? ` -f -a ${quote(choices.join(' '))}` : ''} -d ${quote(description)}`
      }),
    ]
  })
  return `# fish completion of corral\n${lines.join('\n')}\n`
}
