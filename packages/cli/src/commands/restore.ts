import { readFileSync } from 'node:fs'
import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import type { AgentTask, Stored } from '@corral/resources'
import { restoreTasks } from '@corral/tasks'
import type { Command } from 'commander'
import { loadAll } from 'js-yaml'
import { CliError } from '../cli-error.js'
import { examples, print } from './common.js'

interface RestoreCommandOptions {
  kubeconfig: string
  namespace: string
  json?: boolean
}

/** `corral server restore`: the objects of a back-up; the volume with their records is given to the installation. */
export function addRestoreCommand(server: Command): void {
  server
    .command('restore')
    .summary('make the tasks of a back-up again, with their ends, before a server is installed')
    .description(
      'Takes what `kubectl get agenttasks -o yaml` wrote. Applied by kubectl the tasks would have lost how they ended, and\nwould run once more. The server that is installed next, on the volume of the back-up, finds their records. Tasks that\nran when the back-up was made begin again in a new sandbox.',
    )
    .argument('<file>', 'AgentTasks as YAML or JSON')
    .option('--json', 'print JSON')
    .addHelpText('after', examples('corral server restore agenttasks.yaml --kubeconfig cluster.yaml'))
    .action(async (file: string, _options: object, command: Command) =>
      restore(file, command.optsWithGlobals<RestoreCommandOptions>()),
    )
}

async function restore(file: string, options: RestoreCommandOptions): Promise<void> {
  const { kubeconfig, namespace } = options
  const tasks = readTasks(file)
  const client = kubeClientFromConfig(await loadKubeConfig(kubeconfig ? { path: kubeconfig } : {}))
  try {
    const result = await restoreTasks({ client, namespace, tasks, now: new Date() })
    const present = result.present.length === 0 ? '' : `; already there: ${result.present.join(', ')}`
    print(result, options, ({ restored }) => `${restored.length} tasks restored to namespace ${namespace}${present}`)
  } finally {
    await client.close()
  }
}

function readTasks(file: string): Stored<AgentTask>[] {
  const documents = readDocuments(file) as { kind?: string; items?: unknown[] }[]
  const objects = documents.flatMap((each) => (each?.items ? each.items : [each])) as Stored<AgentTask>[]
  const wrong = objects.find((each) => each?.kind !== 'AgentTask' || !each.metadata?.name || !each.metadata.uid)
  if (wrong !== undefined || objects.length === 0)
    throw new CliError(`${file} holds something else than AgentTasks of a cluster`, {
      exitCode: 2,
      hint: 'Write it with `kubectl get agenttasks -o yaml`.',
    })
  return objects
}

function readDocuments(file: string): unknown[] {
  try {
    return loadAll(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new CliError(`${file} cannot be read: ${(cause as Error).message}`, { exitCode: 2, cause })
  }
}
