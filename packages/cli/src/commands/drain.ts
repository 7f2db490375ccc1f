import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { drainTasks } from '@corral/tasks'
import { type Command, Option } from 'commander'
import { parseDurationSeconds } from '../output/parse-duration.js'
import { examples, print, say } from './common.js'

interface DrainCommandOptions {
  kubeconfig: string
  namespace: string
  timeout: number
  tasks: 'delete' | 'keep'
  json?: boolean
}

/** `corral server drain`: what has to happen before the servers of a namespace are taken away for good. */
export function addDrainCommand(server: Command): void {
  server
    .command('drain')
    .summary('end every task of the namespace, so that an uninstall leaves nothing behind')
    .description(
      'Cancels the tasks of the namespace, waits until a running server has ended them, and removes them. Without this\nthe finalizer of each AgentTask keeps it, and with it the namespace, once no server is there to remove it. What no\nserver ends in time is released by force: its sandbox is given back and its finalizer taken away. Environments\nare removed with what was built for them; a later server builds them again.',
    )
    .option('--timeout <duration>', 'how long a running server may take', parseDurationSeconds, 120)
    .addOption(
      new Option('--tasks <what>', 'delete ended tasks, or keep them as objects and only take their finalizers away')
        .choices(['delete', 'keep'])
        .default('delete'),
    )
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      examples(
        'corral server drain --kubeconfig cluster.yaml',
        'corral server drain --kubeconfig cluster.yaml --namespace team-a --tasks keep',
      ),
    )
    .action(async (_options: object, command: Command) => drain(command.optsWithGlobals<DrainCommandOptions>()))
}

async function drain(options: DrainCommandOptions): Promise<void> {
  const { kubeconfig, namespace } = options
  const client = kubeClientFromConfig(await loadKubeConfig(kubeconfig ? { path: kubeconfig } : {}))
  try {
    const result = await drainTasks({
      client,
      namespace,
      keepTasks: options.tasks === 'keep',
      timeoutMs: options.timeout * 1000,
      say,
    })
    const forced = result.forced.length === 0 ? '' : `; released by force: ${result.forced.join(', ')}`
    const built = result.environments === 0 ? '' : `; ${result.environments} environments removed`
    print(result, options, ({ drained }) => `${drained} tasks drained from namespace ${namespace}${forced}${built}`)
  } finally {
    await client.close()
  }
}
