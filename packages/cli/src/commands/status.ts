import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { activeTasks } from '../client/active-tasks.js'
import { findPlatform } from '../client/find-platform.js'
import { platformLogOf } from '../client/start-platform.js'
import { tasksClient } from '../client/tasks.js'
import { dataDirWords } from '../output/next-commands.js'
import { dataDirectoryOf, isLocked } from '../platform/data-directory.js'
import { type CommonOptions, examples, print, withPlatform } from './common.js'

/** `corral status`: whether a platform runs, where, and what it does. Exit code 3 where none does. */
export function addStatusCommand(program: Command): void {
  withPlatform(program.command('status'))
    .summary('whether a platform runs, where, and what it is doing')
    .description('Exit code 0 when a platform answers, 3 when none does.')
    .addHelpText('after', examples('corral status', 'corral status --json', 'eval "$(corral status --env)"'))
    .option('--env', 'print URL and TOKEN of the HTTP API for a shell to evaluate, and nothing else')
    .action(async (options: CommonOptions & { env?: boolean }) => {
      const platform = await findPlatform(options)
      if (!platform) throw await nothingRuns(options)
      if (options.env) {
        process.stdout.write(shellVariables(platform))
        return
      }
      const tasks = await activeTasks(tasksClient(platform))
      const { url, pid, isolation, kubeconfig } = platform
      const waiting = tasks.filter(({ status }) => status === 'QUEUED').length
      const report = { url, pid, isolation, kubeconfig, running: tasks.length - waiting, queued: waiting }
      print(report, options, () => {
        const rows: [string, string | number | undefined][] = [
          ['url', url],
          ['process', pid],
          ['isolation', isolation],
          ['kubeconfig', kubeconfig],
          ['tasks', `${report.running} running, ${report.queued} queued`],
        ]
        const known = rows.filter(([, value]) => value !== undefined)
        return ['corral is up', ...known.map(([name, value]) => `  ${name.padEnd(11)} ${value}`)].join('\n')
      })
    })
}

/** Lines that a POSIX shell evaluates, whatever the values are. */
export function shellVariables({ url, token }: { url: string; token: string }): string {
  const quoted = (value: string): string => `'${value.replaceAll("'", `'\\''`)}'`
  return `URL=${quoted(url)}\nTOKEN=${quoted(token)}\n`
}

async function nothingRuns(options: CommonOptions): Promise<CliError> {
  const directory = dataDirectoryOf(options)
  if (await isLocked(directory))
    return new CliError(`a platform of ${directory.path} is starting or stopping`, {
      exitCode: 3,
      hint: `Ask again in a moment; its log is ${platformLogOf(directory)} where it runs in the background.`,
    })
  return new CliError(`no platform of ${directory.path} is running`, {
    exitCode: 3,
    hint: `Start one with \`corral up -d${dataDirWords(options.dataDir)}\`; \`corral run\` does it by itself.`,
  })
}
