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
      await using client = await sandboxClient({
        ...options,
        ...(platform.kubeconfig ? { kubeconfig: platform.kubeconfig } : {}),
      })
      const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true
      const shell = command.length > 0 ? command : loginShell
      const process_ = await client.sandboxes.execStream({ name }, ['/bin/sh', '-c', enterRepository, 'sh', ...shell], {
        stdin: true,
        tty: isTerminal,
      })
      process.exitCode = await attachTerminal(process_, { tty: isTerminal, stdin: true })
    })
}

/** The best shell the sandbox has. */
export const loginShell: readonly string[] = [
  '/bin/sh',
  '-c',
  'if command -v bash >/dev/null; then exec bash; else exec sh; fi',
]

const enterRepository = `for d in "\${CORRAL_WORKSPACE:-}" /workspace "$HOME"; do
  if [ -n "$d" ] && [ -d "$d/repo" ]; then cd "$d/repo"; break; fi
done
exec "$@"`
