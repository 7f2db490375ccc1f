import { endpointSecret, providers } from '@corral/agents'
import type { EndpointStore } from '@corral/tasks'
import { type Command, Option } from 'commander'
import { CliError } from '../cli-error.js'
import { table } from '../output/table.js'
import { dataDirectoryOf, prepareDataDirectory } from '../platform/data-directory.js'
import { examples, print } from './common.js'

/** What most servers of open models speak. */
const exampleKind = [...providers.keys()][1]

interface EndpointOptions {
  dataDir?: string
  kind: string
  baseUrl: string
  json?: boolean
}

export function addEndpointCommand(program: Command): void {
  const endpoint = program
    .command('endpoint')
    .summary('model servers of your own')
    .description(
      'Servers that speak the API of a known provider, such as a model on this machine. The broker reaches them for the\nagent; a sandbox never does. Use one with `corral run --provider NAME`.',
    )
  const common = (command: Command): Command =>
    command.option('--data-dir <dir>', 'data directory of the platform').option('--json', 'print JSON')

  common(endpoint.command('add').argument('<name>', 'what tasks call it'))
    .summary('add an endpoint, or change the one of this name')
    .addOption(new Option('--kind <api>', 'the API it speaks').choices([...providers.keys()]).makeOptionMandatory())
    .requiredOption('--base-url <url>', 'its address as its own documentation gives it, often ending with /v1')
    .addHelpText(
      'after',
      `\nIf it wants a key: corral secret set ${endpointSecret('NAME')}\n${examples(`corral endpoint add local --kind ${exampleKind} --base-url http://127.0.0.1:11434/v1`)}`,
    )
    .action(async (name: string, options: EndpointOptions) => {
      const added = { name, kind: options.kind, base_url: options.baseUrl }
      await (await storeOf(options)).put(added).catch(wrongUsage)
      print({ ...added, secret: endpointSecret(name) }, options, () => `added the endpoint "${name}"`)
    })
  common(endpoint.command('list'))
    .summary('the endpoints that were added')
    .action(async (options: EndpointOptions) => {
      const endpoints = await (await storeOf(options)).list()
      print({ endpoints }, options, () =>
        endpoints.length === 0
          ? 'no endpoints'
          : table(
              ['NAME', 'KIND', 'BASE URL'],
              endpoints.map(({ name, kind, base_url }) => [name, kind, base_url]),
            ),
      )
    })
  common(endpoint.command('rm').argument('<name>'))
    .summary('forget an endpoint; its key stays until `corral secret rm`')
    .action(async (name: string, options: EndpointOptions) => {
      if (!(await (await storeOf(options)).remove(name)))
        throw new CliError(`there is no endpoint "${name}"`, { hint: 'List them with `corral endpoint list`.' })
      print({ name, removed: true }, options, () => `forgot the endpoint "${name}"`)
    })
}

function wrongUsage(error: unknown): never {
  const { code, message, hint } = error as { code?: string; message: string; hint?: string }
  if (code !== 'Invalid') throw error
  throw new CliError(message, { exitCode: 2, ...(hint ? { hint } : {}), cause: error })
}

/** Loaded here: with it would come half the platform, which no other command should wait for. */
async function storeOf(options: EndpointOptions): Promise<EndpointStore> {
  const { fileEndpointStore } = await import('@corral/tasks')
  const directory = dataDirectoryOf(options)
  prepareDataDirectory(directory)
  return fileEndpointStore(directory.endpoints)
}
