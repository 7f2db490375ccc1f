import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ConnectionCheck, SandboxProviderSettings } from '@corral/protocol'
import type { ProviderStore } from '@corral/tasks'
import { type Command, Option } from 'commander'
import { CliError } from '../cli-error.js'
import { parseAtOnce } from '../output/parse-duration.js'
import { table } from '../output/table.js'
import { dataDirectoryOf, prepareDataDirectory } from '../platform/data-directory.js'
import { examples, print } from './common.js'

interface ProviderOptions {
  dataDir?: string
  type: SandboxProviderSettings['type']
  kubeconfig?: string
  context?: string
  namespace?: string
  runtimeClass?: string
  image?: string
  pool?: string
  warm?: number
  json?: boolean
}

/** The names of the platform's own. */
const ownNames: ReadonlySet<string> = new Set(['embedded', 'kubernetes'])

export function addProviderCommand(program: Command): void {
  const provider = program
    .command('provider')
    .summary('clusters that tasks may run in')
    .description(
      'Clusters with the Agent Sandbox controllers, in which this platform may run sandboxes of tasks. The platform stays\nwhere it is: repositories, keys and results never leave it, and a sandbox reaches its model over the connection the\nplatform opened to it. Use one with `corral run --sandbox-provider NAME`, or for all tasks with `corral up --provider NAME`.',
    )
  const common = (command: Command): Command =>
    command.option('--data-dir <dir>', 'data directory of the platform').option('--json', 'print JSON')

  common(provider.command('add').argument('<name>', 'what tasks call it'))
    .summary('add a cluster, or change the one of this name')
    .addOption(
      new Option('--type <type>', 'what it is; agent-sandbox is another word for kubernetes')
        .choices(['kubernetes', 'agent-sandbox'])
        .default('kubernetes'),
    )
    .option('--kubeconfig <file>', 'kubeconfig to use (default: KUBECONFIG or ~/.kube/config of the platform)')
    .option('--context <name>', 'context of the kubeconfig (default: its current one)')
    .option('--namespace <name>', 'namespace of the sandboxes (default: that of the context)')
    .option('--runtime-class <name>', 'RuntimeClass of the sandboxes, such as gvisor')
    .option('--image <ref>', 'image of the sandboxes; it has to run the daemon')
    .option('--pool <name>', 'a pool to use as it is, instead of one made for these settings')
    .option('--warm <n>', 'sandboxes kept ready in the pool that is made', parseAtOnce)
    .addHelpText(
      'after',
      examples(
        'corral provider add staging --context staging --namespace agents --runtime-class gvisor',
        'corral provider check staging',
        'corral run "Fix the failing test" --sandbox-provider staging',
      ),
    )
    .action(async (name: string, options: ProviderOptions) => {
      if (ownNames.has(name))
        throw new CliError(`"${name}" is the platform's own`, { exitCode: 2, hint: 'Choose another name.' })
      const settings = settingsOf(name, options)
      if (settings.kubeconfig !== undefined && !existsSync(settings.kubeconfig))
        throw new CliError(`there is no kubeconfig ${settings.kubeconfig}`, { exitCode: 2 })
      await (await storeOf(options)).put(settings).catch(wrongUsage)
      print(settings, options, () => `added the provider "${name}"; look at it with \`corral provider check ${name}\``)
    })
  common(provider.command('list'))
    .summary('the clusters that were added')
    .action(async (options: ProviderOptions) => {
      const providers = await (await storeOf(options)).list()
      print({ providers }, options, () =>
        providers.length === 0
          ? 'no providers beside the platform itself'
          : table(
              ['NAME', 'CONTEXT', 'NAMESPACE', 'RUNTIME CLASS', 'POOL'],
              providers.map((each) => [
                each.name,
                each.context ?? '',
                each.namespace ?? '',
                each.runtime_class_name ?? '',
                each.pool ?? '',
              ]),
            ),
      )
    })
  common(provider.command('rm').argument('<name>'))
    .summary('forget a cluster; tasks that run there end')
    .action(async (name: string, options: ProviderOptions) => {
      if (!(await (await storeOf(options)).remove(name))) throw unknown(name)
      print({ name, removed: true }, options, () => `forgot the provider "${name}"`)
    })
  common(provider.command('check').argument('<name>'))
    .summary('look at everything the platform needs of a cluster, and start a sandbox there')
    .action(async (name: string, options: ProviderOptions) => {
      const settings = await (await storeOf(options)).find(name)
      if (!settings) throw unknown(name)
      const checks = await checksOf(settings)
      print({ name, checks }, options, () =>
        table(
          ['STATE', 'CHECK', 'DETAIL'],
          checks.map(({ state, title, detail, remedy }) => [state, title, remedy ? `${detail}; ${remedy}` : detail]),
        ),
      )
      if (checks.some(({ state }) => state === 'fail')) process.exitCode = 1
    })
}

/** Paths are the platform's, whose working directory is another one. */
function settingsOf(name: string, options: ProviderOptions): SandboxProviderSettings {
  const { type, context, namespace, image, pool, warm } = options
  return {
    name,
    type,
    ...(options.kubeconfig ? { kubeconfig: resolve(options.kubeconfig) } : {}),
    ...(context ? { context } : {}),
    ...(namespace ? { namespace } : {}),
    ...(options.runtimeClass ? { runtime_class_name: options.runtimeClass } : {}),
    ...(image ? { image } : {}),
    ...(pool ? { pool } : {}),
    ...(warm === undefined ? {} : { warm }),
  }
}

async function checksOf(settings: SandboxProviderSettings): Promise<ConnectionCheck[]> {
  const { checksOfProvider } = await import('../platform/sandbox-providers.js')
  const checks: ConnectionCheck[] = []
  for await (const check of checksOfProvider(settings, new AbortController().signal)) checks.push(check)
  return checks
}

function unknown(name: string): CliError {
  return new CliError(`there is no provider "${name}"`, { hint: 'List them with `corral provider list`.' })
}

function wrongUsage(error: unknown): never {
  const { code, message, hint } = error as { code?: string; message: string; hint?: string }
  if (code !== 'Invalid') throw error
  throw new CliError(message, { exitCode: 2, ...(hint ? { hint } : {}), cause: error })
}

/** Loaded here: with it would come half the platform, which no other command should wait for. */
async function storeOf(options: ProviderOptions): Promise<ProviderStore> {
  const { fileProviderStore } = await import('@corral/tasks')
  const directory = dataDirectoryOf(options)
  prepareDataDirectory(directory)
  return fileProviderStore(directory.providers)
}
