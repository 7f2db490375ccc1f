import { rmSync, writeFileSync } from 'node:fs'
import { defaultAgentName } from '@corral/agents'
import type { Tier } from '@corral/node'
import { type Command, Option } from 'commander'
import { CliError } from '../cli-error.js'
import { findPlatform } from '../client/find-platform.js'
import { platformLogOf, startInBackground } from '../client/start-platform.js'
import { pc } from '../output/colors.js'
import type { LogLevel } from '../output/logger.js'
import { collected, parseAtOnce, parseDurationSeconds, parsePids, parsePort } from '../output/parse-duration.js'
import { dataDirectoryOf, letSandboxesRead, readReady } from '../platform/data-directory.js'
import { isWanted, untilIdle } from '../platform/until-idle.js'
import { untilStopSignal } from '../platform/until-stop-signal.js'
import { examples, packageCacheOption, snapshotBudgetOption } from './common.js'

interface UpOptions {
  dataDir?: string
  port: number
  allowHost: readonly string[]
  apiPort: number
  readyFile?: string
  isolation?: Tier
  allowProcess?: boolean
  maxTasks: number
  maxHeld: number
  warm: number
  podPids?: number
  agent: string
  provider?: string
  packageCache: number
  snapshotBudget: number
  idleExit?: number
  logLevel: LogLevel
  detach?: boolean
  json?: boolean
}

export function addUpCommand(program: Command): void {
  program
    .command('up')
    .summary('start the platform on this machine')
    .description(
      'Starts everything in one process: a Kubernetes API on loopback, the Agent Sandbox controllers, a node that runs\npods as isolated local processes, the task controller, the model broker and the HTTP API. Ctrl-C ends it;\nrunning tasks go on in their sandboxes, and started again on the same data directory it continues with them.',
    )
    .option('--data-dir <dir>', 'where everything is kept (default: ~/.corral, for root /var/lib/corral)')
    .option('--port <port>', 'port of the HTTP API; 0 takes a free one and remembers it', parsePort, 0)
    .addOption(
      new Option(
        '--allow-host <name>',
        'another host name requests may come by, such as that of a tunnel; repeat it for more',
      )
        .argParser(collected)
        .default([], 'none'),
    )
    .option('--api-port <port>', 'port of the Kubernetes API; 0 takes a free one and remembers it', parsePort, 0)
    .option('--ready-file <file>', 'write {"url","token","kubeconfig","pid","isolation"} there when ready')
    .addOption(
      new Option('--isolation <tier>', 'insist on a tier; "process" is not a sandbox').choices([
        'bubblewrap',
        'process',
      ]),
    )
    .option('--allow-process', 'go on without a sandbox where none works (not for code you do not trust)')
    .option('--max-tasks <n>', 'tasks that run at once; the rest queue', parseAtOnce, 10)
    .option('--max-held <n>', 'sandboxes held for follow-ups at once; the oldest goes first', parseAtOnce, 5)
    .option('--warm <n>', 'sandboxes kept ready', parseAtOnce, 2)
    .option('--pod-pids <n>', 'processes and threads one sandbox may have (default: 1024)', parsePids)
    .option('--agent <name>', 'agent of tasks that name none', defaultAgentName)
    .option(
      '--provider <name>',
      'cluster of tasks that name none, as `corral provider add` named it (default: this machine)',
    )
    .addOption(packageCacheOption())
    .addOption(snapshotBudgetOption())
    .option('--idle-exit <duration>', 'end after this long without a task', parseDurationSeconds)
    .addOption(
      new Option('--log-level <level>', 'what is logged to standard error')
        .choices(['debug', 'info', 'warn', 'error', 'silent'])
        .default('warn'),
    )
    .option('-d, --detach', 'in the background: returns when it is ready; end it with `corral down`')
    .option('--json', 'print the ready record as JSON')
    .addHelpText(
      'after',
      examples(
        'corral up -d                      # in the background',
        'corral status',
        'corral down',
        'corral up --port 7000 --max-tasks 4',
        'corral up --provider staging      # tasks run in the cluster that `corral provider add staging` named',
      ),
    )
    .action((options: UpOptions, command: Command) => (options.detach ? upDetached(options, command) : up(options)))
}

async function up(options: UpOptions): Promise<void> {
  letSandboxesRead()
  let running: { letGo(): Promise<void> } | undefined
  const stopSignal = untilStopSignal(async () => running?.letGo())
  // Whatever hangs, at the start or at the end: what it holds is the cradle's or on disk.
  void stopSignal.then(() => setTimeout(() => process.exit(1), stopWithinMs).unref())
  const { jsonLogger } = await import('../output/logger.js')
  const { startPlatform } = await import('../platform/platform.js')
  const directory = dataDirectoryOf(options)
  const platform = await startPlatform({
    dataDir: directory.path,
    httpPort: options.port,
    allowedHosts: options.allowHost,
    apiPort: options.apiPort,
    ...(options.readyFile ? { readyFile: options.readyFile } : {}),
    ...(options.isolation ? { isolation: options.isolation } : {}),
    ...(options.allowProcess ? { allowProcess: true } : {}),
    maxConcurrent: options.maxTasks,
    maxHeld: options.maxHeld,
    warmSandboxes: options.warm,
    ...(options.podPids === undefined ? {} : { podPids: options.podPids }),
    defaultAgent: options.agent,
    ...(options.provider ? { defaultProvider: options.provider } : {}),
    packageCacheBytes: options.packageCache,
    snapshotBudgetBytes: options.snapshotBudget,
    env: process.env,
    log: jsonLogger(options.logLevel),
  })
  running = platform
  const { ready } = platform
  if (options.json) process.stdout.write(`${JSON.stringify(ready)}\n`)
  else process.stdout.write(banner(ready, platform, await linkOf(ready)))
  const stopping = new AbortController()
  const { signal } = stopping
  // Of a platform before this one.
  rmSync(directory.stay, { force: true })
  await Promise.race([
    stopSignal,
    ...(options.idleExit
      ? [untilIdle(() => isWanted(platform, directory), { idleMs: options.idleExit * 1000, signal })]
      : []),
  ])
  stopping.abort()
  if (!options.json) process.stdout.write(farewell(platform.heldTasks()))
  await platform.stop()
  setTimeout(() => process.exit(), lastMomentsMs).unref()
}

/** Service managers and containers kill after ten seconds or more; people press Ctrl-C again sooner. */
const stopWithinMs = 4_800
const lastMomentsMs = 250

/** Starts the same in the background. A platform that runs already is the one that was asked for. */
async function upDetached(options: UpOptions, command: Command): Promise<void> {
  const running = await findPlatform({ dataDir: options.dataDir })
  const directory = dataDirectoryOf(options)
  const ready = running ? readReady(directory) : await startInBackground(directory, sameOptions(command))
  // `corral run` may have started the one that runs, to end when idle; this command promises one that stays.
  if (running && ready && options.idleExit === undefined) writeFileSync(directory.stay, '')
  if (!ready) throw new CliError('CORRAL_URL names a platform elsewhere', { exitCode: 2, hint: 'Unset it first.' })
  if (options.json) process.stdout.write(`${JSON.stringify(ready)}\n`)
  else {
    const log = running ? '' : `  log         ${platformLogOf(directory)}\n`
    const { isSandboxTier } = await import('@corral/node')
    const tier = { isSandbox: isSandboxTier(ready.isolation), remedy: undefined }
    const shown = banner(ready, tier, await linkOf(ready))
    process.stdout.write(`${running ? 'it runs already: ' : ''}${shown}${log}`)
  }
}

/** The options of this call that the process in the background gets, as they were given. */
function sameOptions(command: Command): string[] {
  return command.options.flatMap((option) => {
    const name = option.attributeName()
    if (name === 'detach' || name === 'json' || name === 'dataDir') return []
    if (command.getOptionValueSource(name) !== 'cli') return []
    const value: unknown = command.getOptionValue(name)
    const flag = option.long ?? ''
    if (value === true) return [flag]
    if (Array.isArray(value)) return value.flatMap((one) => [flag, String(one)])
    return [flag, name === 'idleExit' ? `${String(value)}s` : String(value)]
  })
}

function farewell(tasks: readonly string[]): string {
  if (tasks.length === 0) return 'stopping\n'
  const what = tasks.length === 1 ? `task ${tasks[0]} goes` : `${tasks.length} tasks go`
  return `stopping: ${what} on; \`corral up\` on the same data directory continues with ${tasks.length === 1 ? 'it' : 'them'}\n`
}

/** Signs a browser in once, within five minutes. */
async function linkOf({ url, token }: { url: string; token: string }): Promise<string> {
  return (await import('@corral/server')).loginLink(url, token)
}

function banner(
  ready: { url: string; token: string; kubeconfig: string; isolation: string },
  { isSandbox, remedy }: { isSandbox: boolean; remedy: string | undefined },
  link: string,
): string {
  return [
    `${pc.green('corral is up')} at ${pc.bold(ready.url)}`,
    `  browser     ${link}`,
    `  url         ${ready.url}`,
    `  token       ${ready.token}`,
    `  kubeconfig  ${ready.kubeconfig}`,
    `  isolation   ${isSandbox ? ready.isolation : pc.yellow(`${ready.isolation} (not a sandbox)`)}`,
    ...(remedy ? [`              ${remedy}`] : []),
    '',
  ].join('\n')
}
