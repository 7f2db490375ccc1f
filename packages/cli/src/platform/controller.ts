import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import {
  buildInfoGauge,
  type ManagerCommand,
  managerFlags,
  parseManagerOptions,
  processMetrics,
  readLabelDomains,
  restClientMetrics,
  startManager,
  startOtelTracer,
} from '@corral/controllers'
import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { CliError } from '../cli-error.js'
import { jsonLogger, type LogLevel } from '../output/logger.js'
import { version } from '../version.js'
import { explainPort } from './port-holder.js'
import { untilStopSignal } from './until-stop-signal.js'

const inClusterNamespaceFile = '/var/run/secrets/kubernetes.io/serviceaccount/namespace'

/** `corral controller`: the manager alone, with upstream's own flags. */
export async function runController(argv: readonly string[]): Promise<void> {
  if (argv.includes('--help') || argv.includes('-h'))
    return void process.stdout.write(`Usage: corral controller [flags]\n\n${flagHelp()}`)
  const parsed = parseManagerOptions(argv)
  if ('error' in parsed) throw new CliError(parsed.error, { exitCode: 1, hint: 'See `corral controller --help`.' })
  const { command } = parsed
  if (command.showVersion) return void process.stdout.write(`corral ${version}\n`)
  const stop = untilStopSignal()
  const log = jsonLogger(levelOf(command))
  for (const warning of command.warnings) log.warn(warning)
  const access = await loadKubeConfig(command.kubeconfig ? { path: command.kubeconfig } : {})
  const metrics = new Registry()
  collectDefaultMetrics({ register: metrics })
  processMetrics(metrics)
  const client = kubeClientFromConfig(access, {
    userAgent: `corral-controller/${version}`,
    connections: command.client.connections,
    allowH2: true,
    separateWatchConnection: command.client.separateWatchConnection,
    ...(command.client.rateLimit && { rateLimit: command.client.rateLimit }),
    observer: restClientMetrics(metrics),
  })
  buildInfoGauge(metrics, { version, commit: '', date: '' })
  const tracing = command.options.tracing ? await startOtelTracer() : undefined
  const manager = startManager({
    client,
    options: {
      ...command.options,
      claim: { ...command.options.claim, labelDomains: await readLabelDomains() },
      ...(command.leaderElect
        ? { leaderElection: { namespace: electionNamespace(command), identity: `${hostname()}_${randomUUID()}` } }
        : {}),
    },
    metrics,
    log,
    ...(tracing ? { tracer: tracing.tracer } : {}),
  })
  // `done` rejects when the election was lost or a port is taken: then this process has nothing left to do.
  const failed = await Promise.race([
    stop.then(() => undefined),
    manager.done.then(
      () => undefined,
      (error: unknown) => error ?? new Error('the manager ended'),
    ),
  ])
  await manager.stop()
  await tracing?.shutDown()
  await client.close()
  if (failed !== undefined) throw explained(failed)
}

/** What happens to every manager some day, told without a stack: a port that is taken with its holder, a lost election. */
function explained(error: unknown): unknown {
  const { code, port } = error as { code?: string; port?: number }
  if (code === 'LeadershipLost')
    return new CliError('leader election lost', {
      exitCode: 1,
      hint: 'Another manager leads, or the API server did not answer in time. A kubelet starts this one again.',
      cause: error,
    })
  const flags = '--metrics-bind-address or --health-probe-bind-address'
  return code === 'EADDRINUSE' && port !== undefined ? explainPort(error, port, flags) : error
}

function electionNamespace(command: ManagerCommand): string {
  if (command.leaderElectionNamespace) return command.leaderElectionNamespace
  if (existsSync(inClusterNamespaceFile)) return readFileSync(inClusterNamespaceFile, 'utf8').trim()
  throw new CliError('outside a cluster the election needs --leader-election-namespace', {
    hint: 'Or switch it off with --leader-elect=false.',
  })
}

function levelOf({ logging }: ManagerCommand): LogLevel {
  if (logging.level === 'debug' || logging.level === 'error' || logging.level === 'info') return logging.level
  return logging.development ? 'debug' : 'info'
}

function flagHelp(): string {
  const rows = managerFlags.map(({ name, kind, default: value, help }) => [
    `--${name} ${kind}`,
    `${help}${value === '' ? '' : ` (default ${kind === 'duration' ? `${Number(value) / 1000}s` : String(value)})`}`,
  ])
  const width = Math.max(...rows.map(([left]) => left?.length ?? 0))
  return `${rows.map(([left, right]) => `  ${left?.padEnd(width)}  ${right}`).join('\n')}\n`
}
