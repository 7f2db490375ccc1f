import type { AgentSandboxClient } from '@corral/agent-sandbox-sdk'
import type { TasksClient, TaskView } from '@corral/protocol'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { requirePlatform } from '../client/find-platform.js'
import { tasksClient } from '../client/tasks.js'
import { attachTerminal } from '../client/terminal.js'
import { type CommonOptions, examples, withPlatform } from './common.js'

/** `corral task shell`: a terminal where the agent works. */
export function addTaskShell(task: Command): void {
  withPlatform(task.command('shell').argument('<id>').argument('[command...]'))
    .summary('a terminal in the sandbox of a running task')
    .description('Opens a shell in the repository of a running task, or of a failed one that was created with --keep.')
    .addHelpText('after', examples('corral task shell ID', 'corral task shell ID -- git status'))
    .option('-n, --namespace <name>', 'namespace', 'corral')
    .action(async (id: string, command: string[], options: CommonOptions & { namespace: string }) => {
      const platform = await requirePlatform(options)
      const view = await tasksClient(platform).get(id)
      const name = view.sandbox?.name
      if (!name)
        throw new CliError(`task ${id} has no sandbox (${view.status})`, {
          hint: 'A task has one while it runs; create it with --keep to hold the sandbox of a failed one.',
        })
      const { sandboxClient } = await import('../client/kube-access.js')
      const provider = view.sandbox?.provider
      await using client =
        provider === undefined
          ? await sandboxClient({
              ...options,
              ...(platform.kubeconfig ? { kubeconfig: platform.kubeconfig } : {}),
            })
          : await clientOf(provider, tasksClient(platform))
      const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true
      const shell = command.length > 0 ? command : loginShell
      const process_ = await client.sandboxes
        .execStream({ name }, ['/bin/sh', '-c', enterRepository, 'sh', ...shell], { stdin: true, tty: isTerminal })
        .catch((error: { code?: string }) => {
          throw error.code === 'NotFound' && view.times?.finished_at ? sandboxIsGone(view, error) : error
        })
      process.exitCode = await attachTerminal(process_, { tty: isTerminal, stdin: true })
    })
}

/** A task that has ended remembers the name of a sandbox that went with it. */
function sandboxIsGone({ id, status, pushed }: TaskView, cause: unknown): CliError {
  return new CliError(`the sandbox of task ${id} went when it ended (${status})`, {
    exitCode: 1,
    hint: pushed
      ? `Look at its work with \`corral task checkout ${id}\`, or go on with \`corral task send ${id} "…"\`.`
      : `See what it did with \`corral task logs ${id}\`; created with --keep, a failed task keeps its sandbox.`,
    cause,
  })
}

/** The cluster of a provider, reached from here with the settings the platform has for it. */
async function clientOf(name: string, platform: Pick<TasksClient, 'providers'>): Promise<AgentSandboxClient> {
  const { providers } = await platform.providers()
  const settings = providers.find((provider) => provider.name === name)?.settings
  if (!settings) throw new CliError(`there is no provider "${name}" any more`)
  const { providerFrom } = await import('../platform/sandbox-places.js')
  return providerFrom(settings).client
}

/** The best shell the sandbox has. */
export const loginShell: readonly string[] = [
  '/bin/sh',
  '-c',
  'if command -v bash >/dev/null; then exec bash; else exec sh; fi',
]

/** Runs its arguments in the repository of the sandbox. */
export const enterRepository = `for d in "\${CORRAL_WORKSPACE:-}" /workspace "$HOME"; do
  if [ -n "$d" ] && [ -d "$d/repo" ]; then cd "$d/repo"; break; fi
done
exec "$@"`
