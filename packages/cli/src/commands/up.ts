import type { Tier } from '@corral/node'
import { type Command, Option } from 'commander'
import pc from 'picocolors'
import type { LogLevel } from '../output/logger.js'
import { parseCount, parseDurationSeconds, parsePort } from '../output/parse-duration.js'
import { defaultDataDirectory } from '../platform/data-directory.js'
import { untilIdle } from '../platform/until-idle.js'
import { untilStopSignal } from './common.js'

interface UpOptions {
  dataDir?: string
  port: number
  apiPort: number
  readyFile?: string
  isolation?: Tier
  allowProcess?: boolean
  maxTasks: number
  warm: number
  agent: string
  idleExit?: number
  logLevel: LogLevel
  json?: boolean
}

export function addUpCommand(program: Command): void {
  program
    .command('up')
    .summary('start the platform on this machine')
    .description(
      'Starts everything in one process: a Kubernetes API on loopback, the Agent Sandbox controllers, a node that runs\npods as isolated local processes, the task controller, the model broker and the HTTP API. Ctrl-C ends all of it;\nstarted again on the same data directory it continues where it stopped.',
    )
    .option('--data-dir <dir>', 'where everything is kept (default: ~/.corral, for root /var/lib/corral)')
    .option('--port <port>', 'port of the HTTP API; 0 takes a free one and remembers it', parsePort, 0)
    .option('--api-port <port>', 'port of the Kubernetes API; 0 takes a free one and remembers it', parsePort, 0)
    .option('--ready-file <file>', 'write {"url","token","kubeconfig","pid","isolation"} there when ready')
    .addOption(
      new Option('--isolation <tier>', 'insist on a tier; "process" is not a sandbox').choices([
        'bubblewrap',
        'process',
      ]),
    )
    .option('--allow-process', 'go on without a sandbox where none works (not for code you do not trust)')
    .option('--max-tasks <n>', 'tasks that run at once; the rest queue', parseCount, 10)
    .option('--warm <n>', 'sandboxes kept ready', parseCount, 2)
    .option('--agent <name>', 'agent of tasks that name none', 'claude')
    .option('--idle-exit <duration>', 'end after this long without a task', parseDurationSeconds)
    .addOption(
      new Option('--log-level <level>', 'what is logged to standard error')
        .choices(['debug', 'info', 'warn', 'error', 'silent'])
        .default('warn'),
    )
    .option('--json', 'print the ready record as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  corral up\n  corral up --port 7000 --max-tasks 4\n  KUBECONFIG=~/.corral/kubeconfig kubectl get sandboxes\n',
    )
    .action(up)
}

async function up(options: UpOptions): Promise<void> {
  const stopSignal = untilStopSignal()
  const { jsonLogger } = await import('../output/logger.js')
  const { startPlatform } = await import('../platform/platform.js')
  const platform = await startPlatform({
    dataDir: options.dataDir ?? defaultDataDirectory(process.env),
    httpPort: options.port,
    apiPort: options.apiPort,
    ...(options.readyFile ? { readyFile: options.readyFile } : {}),
    ...(options.isolation ? { isolation: options.isolation } : {}),
    ...(options.allowProcess ? { allowProcess: true } : {}),
    maxConcurrent: options.maxTasks,
    warmSandboxes: options.warm,
    defaultAgent: options.agent,
    env: process.env,
    log: jsonLogger(options.logLevel),
  })
  const { ready } = platform
  if (options.json) process.stdout.write(`${JSON.stringify(ready)}\n`)
  else process.stdout.write(banner(ready, platform.remedy))
  const stopping = new AbortController()
  const { signal } = stopping
  await Promise.race([
    stopSignal,
    ...(options.idleExit ? [untilIdle(() => platform.isBusy(), { idleMs: options.idleExit * 1000, signal })] : []),
  ])
  stopping.abort()
  if (!options.json) process.stdout.write('stopping: ending sandboxes\n')
  await platform.stop()
}

function banner(
  ready: { url: string; token: string; kubeconfig: string; isolation: string },
  remedy: string | undefined,
): string {
  const weak = ready.isolation === 'process'
  return [
    `${pc.green('corral is up')}`,
    `  url         ${ready.url}`,
    `  token       ${ready.token}`,
    `  kubeconfig  ${ready.kubeconfig}`,
    `  isolation   ${weak ? pc.yellow('process (not a sandbox)') : ready.isolation}`,
    ...(remedy ? [`              ${remedy}`] : []),
    '',
  ].join('\n')
}
