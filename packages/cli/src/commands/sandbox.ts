import type { AgentSandboxClient } from '@corral/agent-sandbox-sdk'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import type { KubeOptions } from '../client/kube-access.js'
import { attachTerminal } from '../client/terminal.js'
import { parseDurationSeconds } from '../output/parse-duration.js'
import { age, print, table } from './common.js'

interface SandboxOptions extends KubeOptions {
  json?: boolean
}

/** Loaded when a command runs: help and usage errors need none of it. */
async function sandboxClient(options: KubeOptions): Promise<AgentSandboxClient> {
  return (await import('../client/kube-access.js')).sandboxClient(options)
}

function withCluster(command: Command): Command {
  return command
    .option('--data-dir <dir>', 'data directory of the platform')
    .option('--kubeconfig <file>', 'another cluster (default: the running platform, else what kubectl would use)')
    .option('--context <name>', 'context of that kubeconfig')
    .option('-n, --namespace <name>', 'namespace')
    .option('--json', 'print JSON')
}

export function addSandboxCommand(program: Command): void {
  const sandbox = program
    .command('sandbox')
    .summary('sandboxes without a task')
    .description('Sandboxes of the platform or of any cluster that serves the Agent Sandbox API.')

  withCluster(sandbox.command('create').argument('[name]'))
    .summary('claim a sandbox and wait until it is ready')
    .option('--pool <name>', 'pool to claim from', 'default')
    .option('--template <name>', 'template instead of a pool')
    .option('--ttl <duration>', 'end it by itself after this long', parseDurationSeconds)
    .action(
      async (name: string | undefined, options: SandboxOptions & { pool: string; template?: string; ttl?: number }) => {
        await using client = await sandboxClient(options)
        const created = await client.sandboxes.create({
          ...(options.template ? { template: options.template } : { pool: options.pool }),
          ...(name ? { name } : {}),
          ...(options.ttl ? { shutdownTime: new Date(Date.now() + options.ttl * 1000) } : {}),
        })
        print({ name: created.name, namespace: created.namespace }, options, (made) => made.name)
      },
    )

  withCluster(sandbox.command('list'))
    .alias('ls')
    .summary('sandboxes')
    .action(async (options: SandboxOptions) => {
      await using client = await sandboxClient(options)
      const rows: { name: string; ready: string; reason: string; created: string }[] = []
      for await (const { metadata, status } of client.sandboxes.list()) {
        const ready = status?.conditions?.find((condition) => condition.type === 'Ready')
        rows.push({
          name: metadata.name,
          ready: ready?.status ?? 'Unknown',
          reason: ready?.reason ?? '',
          created: metadata.creationTimestamp,
        })
      }
      print({ sandboxes: rows }, options, () =>
        rows.length === 0
          ? 'no sandboxes'
          : table(
              ['NAME', 'READY', 'REASON', 'AGE'],
              rows.map((row) => [row.name, row.ready, row.reason, age(row.created)]),
            ),
      )
    })

  withCluster(sandbox.command('exec').argument('<name>').argument('<command...>'))
    .summary('run a command in a sandbox')
    .description('Ends with the exit code of the command. Put -- before the command.')
    .option('-i, --stdin', 'pass standard input on')
    .option('-t, --tty', 'with a terminal')
    .option('--cwd <dir>', 'working directory')
    .action(
      async (
        name: string,
        command: string[],
        options: SandboxOptions & { stdin?: boolean; tty?: boolean; cwd?: string },
      ) => {
        await using client = await sandboxClient(options)
        const process_ = await client.sandboxes.execStream({ name }, command, {
          stdin: options.stdin ?? false,
          tty: options.tty ?? false,
          ...(options.cwd ? { cwd: options.cwd } : {}),
        })
        process.exitCode = await attachTerminal(process_, { tty: options.tty ?? false, stdin: options.stdin ?? false })
      },
    )

  withCluster(sandbox.command('rm').argument('<name...>'))
    .summary('end sandboxes')
    .action(async (names: string[], options: SandboxOptions) => {
      await using client = await sandboxClient(options)
      for (const name of names) {
        const claim = await client.claims.find(name)
        const found = claim ?? (await client.sandboxes.objects.find(name))
        if (!found)
          throw new CliError(`there is no sandbox "${name}"`, { hint: 'List them with `corral sandbox list`.' })
        if (claim) await client.claims.delete(name)
        else await client.sandboxes.delete(name)
      }
      print({ removed: names }, options, () => names.map((name) => `removed ${name}`).join('\n'))
    })
}
