import type { AgentSandboxClient } from '@corral/agent-sandbox-sdk'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import type { KubeOptions } from '../client/kube-access.js'
import { findSandbox, noSandbox, sandboxRows } from '../client/sandbox-names.js'
import { attachTerminal, TextSink } from '../client/terminal.js'
import { parseTimeSeconds } from '../output/parse-duration.js'
import { table } from '../output/table.js'
import { age, dataDirOption, examples, print, takenName } from './common.js'
import { addSandboxUse } from './sandbox-files.js'
import { loginShell } from './task-shell.js'

interface SandboxOptions extends KubeOptions {
  json?: boolean
}

/** Loaded when a command runs: help and usage errors need none of it. */
async function sandboxClient(options: KubeOptions): Promise<AgentSandboxClient> {
  return (await import('../client/kube-access.js')).sandboxClient(options)
}

function withCluster(command: Command): Command {
  return dataDirOption(command)
    .option('--kubeconfig <file>', 'another cluster (default: the running platform, else what kubectl would use)')
    .option('--context <name>', 'context of that kubeconfig')
    .option('-n, --namespace <name>', 'namespace')
    .option('--json', 'print JSON')
}

export function addSandboxCommand(program: Command): void {
  const sandbox = program
    .command('sandbox')
    .summary('sandboxes without a task')
    .description(
      'Sandboxes of the platform or of any cluster that serves the Agent Sandbox API. The name you give with `create` is\nthe one every other command takes; the sandbox of a task goes by the id of the task.',
    )
    .addHelpText(
      'after',
      examples(
        'corral sandbox create box --ttl 1h',
        'corral sandbox exec box -- uname -a',
        'echo hello | corral sandbox exec -i box -- cat',
        'corral sandbox shell box',
        'corral sandbox cp ./src box:/workspace/src',
        'corral sandbox forward box 3000',
        'corral sandbox list',
        'corral sandbox rm box',
      ),
    )

  withCluster(sandbox.command('create').argument('[name]'))
    .summary('claim a sandbox and wait until it is ready')
    .option('--pool <name>', 'pool to claim from', 'default')
    .option('--template <name>', 'template instead of a pool')
    .option('--ttl <duration>', 'end it by itself after this long', parseTimeSeconds)
    .action(
      async (name: string | undefined, options: SandboxOptions & { pool: string; template?: string; ttl?: number }) => {
        await using client = await sandboxClient(options)
        const created = await client.sandboxes
          .create({
            ...(options.template ? { template: options.template } : { pool: options.pool }),
            ...(name ? { name } : {}),
            ...(options.ttl ? { shutdownTime: new Date(Date.now() + options.ttl * 1000) } : {}),
          })
          .catch(
            takenName(
              'sandbox',
              name,
              `Use it with \`corral sandbox exec ${name} -- COMMAND\`, end it with \`corral sandbox rm ${name}\``,
            ),
          )
        const { name: sandboxName, claimName, namespace } = created
        print({ name: claimName ?? sandboxName, sandbox: sandboxName, namespace }, options, (made) => made.name)
      },
    )

  withCluster(sandbox.command('list'))
    .summary('sandboxes')
    .action(async (options: SandboxOptions) => {
      await using client = await sandboxClient(options)
      const [sandboxes, claims] = await Promise.all([all(client.sandboxes.list()), all(client.claims.list())])
      const rows = sandboxRows(sandboxes, claims)
      print({ sandboxes: rows }, options, () =>
        rows.length === 0
          ? 'no sandboxes'
          : table(
              ['NAME', 'OF', 'READY', 'REASON', 'AGE', 'SANDBOX'],
              rows.map((row) => [row.name, row.owner, row.ready, row.reason, age(row.created), row.sandbox ?? '']),
            ),
      )
    })

  withCluster(sandbox.command('exec').argument('<name>').argument('<command...>'))
    .summary('run a command in a sandbox')
    .description(
      'Ends with the exit code of the command. Put -- before the command. With --json its output is printed at its end as\n{"exitCode", "stdout", "stderr"}.',
    )
    .option('-i, --stdin', 'pass standard input on')
    .option('-t, --tty', 'with a terminal')
    .option('--cwd <dir>', 'working directory')
    .action(
      async (
        name: string,
        command: string[],
        options: SandboxOptions & { stdin?: boolean; tty?: boolean; cwd?: string },
      ) => {
        const { stdin = false, tty = false, json = false } = options
        if (json && tty) throw new CliError('--json and --tty do not go together', { exitCode: 2 })
        await using client = await sandboxClient(options)
        const process_ = await client.sandboxes.execStream({ name: await findSandbox(client, name) }, command, {
          stdin,
          tty,
          ...(options.cwd ? { cwd: options.cwd } : {}),
        })
        const kept = json ? { stdout: new TextSink(), stderr: new TextSink() } : undefined
        const exitCode = await attachTerminal(process_, { tty, stdin, ...kept })
        if (kept) print({ exitCode, stdout: kept.stdout.text, stderr: kept.stderr.text }, options, () => '')
        process.exitCode = exitCode
      },
    )

  withCluster(sandbox.command('shell').argument('<name>'))
    .summary('a terminal in a sandbox')
    .description('Opens a shell. Without a terminal it reads its commands from standard input.')
    .option('--cwd <dir>', 'working directory')
    .action(async (name: string, options: SandboxOptions & { cwd?: string }) => {
      await using client = await sandboxClient(options)
      const tty = process.stdin.isTTY === true && process.stdout.isTTY === true
      const process_ = await client.sandboxes.execStream({ name: await findSandbox(client, name) }, loginShell, {
        stdin: true,
        tty,
        ...(options.cwd ? { cwd: options.cwd } : {}),
      })
      process.exitCode = await attachTerminal(process_, { tty, stdin: true })
    })

  withCluster(sandbox.command('rm').argument('<name...>'))
    .summary('end sandboxes')
    .action(async (names: string[], options: SandboxOptions) => {
      await using client = await sandboxClient(options)
      const removed: string[] = []
      const missing: string[] = []
      for (const name of new Set(names)) {
        const claim = await client.claims.find(name)
        const found = claim ?? (await client.sandboxes.objects.find(name))
        if (claim) await client.claims.delete(name)
        else if (found) await client.sandboxes.delete(name)
        const list = found ? removed : missing
        list.push(name)
      }
      // One that is not there keeps none of the others.
      if (removed.length > 0) print({ removed }, options, () => removed.map((name) => `removed ${name}`).join('\n'))
      if (missing.length > 0) throw noSandbox(missing.join('", "'))
    })

  addSandboxUse(sandbox, withCluster, sandboxClient)
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}
