import { createInterface } from 'node:readline'
import { endpointSecret, providers } from '@corral/agents'
import type { fileSecretStore } from '@corral/tasks'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { dataDirectoryOf } from '../platform/data-directory.js'
import { print, readStdin } from './common.js'

interface SecretOptions {
  dataDir?: string
  json?: boolean
}

/** Secrets are files of the platform, 0600: they are never an argument, which other processes could read. */
export function addSecretCommand(program: Command): void {
  const secret = program
    .command('secret')
    .summary('keys the platform keeps for its agents')
    .description(
      "Keys of models stay in the platform's data directory and behind its broker; no sandbox ever sees one. Others are\ngiven to the set-up of repositories that were granted them: `corral env grant REPO --secret NAME`.",
    )
  const common = (command: Command): Command =>
    command.option('--data-dir <dir>', 'data directory of the platform').option('--json', 'print JSON')

  common(secret.command('set').argument('<name>'))
    .summary('keep a key, read from standard input or asked for')
    .addHelpText('after', secretHelp())
    .action(async (name: string, options: SecretOptions) => {
      const store = await storeOf(options)
      // Refuses what is no name before a key is asked for.
      await store.find(name)
      const value = process.stdin.isTTY ? await askHidden(`${name} key: `) : await readStdin()
      if (value.trim() === '')
        throw new CliError('no value was given', {
          exitCode: 2,
          hint: 'Give it on standard input, as with `< key.txt`, or type it where it is asked for.',
        })
      await store.set(name, value)
      print({ name, set: true }, options, () => `kept the secret "${name}"`)
    })
  common(secret.command('list'))
    .summary('names of the secrets that are kept')
    .action(async (options: SecretOptions) => {
      const names = await (await storeOf(options)).list()
      print({ secrets: names }, options, () => names.join('\n') || 'no secrets')
    })
  common(secret.command('rm').argument('<name>'))
    .summary('forget a secret')
    .action(async (name: string, options: SecretOptions) => {
      const existed = await (await storeOf(options)).remove(name)
      print({ name, removed: existed }, options, () => (existed ? `forgot "${name}"` : `there was no secret "${name}"`))
    })
}

/** Loaded here: with it would come half the platform, which no other command should wait for. */
async function storeOf(options: SecretOptions): Promise<ReturnType<typeof fileSecretStore>> {
  const { fileSecretStore } = await import('@corral/tasks')
  return fileSecretStore(dataDirectoryOf(options).secrets)
}

/** Which names mean something to the broker. */
function secretHelp(): string {
  const rows = [...providers.values()].map(
    ({ secret, title, keyNote }) => `  ${secret.padEnd(16)} ${keyNote ?? `key of ${title}`}`,
  )
  const [first] = [...providers.values()].map(({ secret }) => secret)
  return [
    '',
    'Names the broker looks for:',
    ...rows,
    `  ${endpointSecret('NAME').padEnd(16)} key of an endpoint (see \`corral endpoint\`)`,
    '',
    'Example:',
    `  corral secret set ${first} < key.txt`,
    '',
  ].join('\n')
}

/** An empty text where the question was left with Ctrl-D. Ctrl-C rejects with the exit code of that signal. */
function askHidden(question: string): Promise<string> {
  // Asked once nothing that is typed is shown any more.
  const input = createInterface({ input: process.stdin, terminal: true })
  process.stderr.write(question)
  return new Promise((resolve, reject) => {
    let answer = ''
    input.once('line', (line) => {
      answer = line
      input.close()
    })
    input.once('SIGINT', () => {
      reject(new CliError('nothing was kept', { exitCode: 130 }))
      input.close()
    })
    input.once('close', () => {
      process.stderr.write('\n')
      resolve(answer)
    })
  })
}
