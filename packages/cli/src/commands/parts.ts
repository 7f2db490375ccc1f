import { hostname } from 'node:os'
import { defaultAgentName } from '@corral/agents'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { parseListenAddress } from '../output/parse-address.js'
import { collected, parseAtOnce, parsePids, parsePort } from '../output/parse-duration.js'
import { brokerServicePort, platformNamespace } from '../platform/names.js'
import type { ApiServerCommandOptions } from '../platform/run-api-server.js'
import type { NodeCommandOptions } from '../platform/run-node.js'
import type { ServerCommandOptions } from '../platform/run-server.js'
import type { TaskPart } from '../platform/task-platform.js'
import { archiveBudgetOption, packageCacheOption } from './common.js'
import { addDrainCommand } from './drain.js'
import { addRestoreCommand } from './restore.js'

/** `http,controller` in any order; at least one. */
function parseParts(text: string): TaskPart[] {
  const known: readonly TaskPart[] = ['http', 'controller']
  const parts = text.split(',').map((word) => word.trim())
  const found = known.filter((part) => parts.includes(part))
  if (found.length === 0 || parts.some((part) => !known.some((name) => name === part)))
    throw new InvalidArgumentError('Give http, controller or http,controller.')
  return found
}

const logLevel = (): Option =>
  new Option('--log-level <level>', 'what is logged to standard error')
    .choices(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')

/** The parts of the platform one by one, for tests and for clusters. Each loads only the code it runs. */
export function addPartCommands(program: Command): void {
  program
    .command('apiserver')
    .summary('only the Kubernetes API, with our kinds installed')
    .option('--data-dir <dir>', 'where objects and certificates are kept')
    .option('--api-port <port>', 'port; 0 takes a free one', parsePort, 0)
    .option('--ready-file <file>', 'write {"url","kubeconfig","token","pid"} there when ready')
    .option('--memory', 'keep objects in memory only')
    .option(
      '--kubelet-certificate-authority <file>',
      'authority of the certificates nodes show for exec, logs and port-forward (default: they are not verified)',
    )
    .addOption(logLevel())
    .action(async (options: ApiServerCommandOptions) =>
      (await import('../platform/run-api-server.js')).runApiServer(options),
    )
  program
    .command('node')
    .summary('only the node agent, for any API server')
    .requiredOption('--kubeconfig <file>', 'the API server to serve')
    .option('--data-dir <dir>', 'where pods and volumes are kept')
    .option('--name <name>', 'name of the node', hostname().toLowerCase())
    .option('--kubelet-port <port>', 'port of the kubelet routes (exec, logs, port-forward)', parsePort, 10250)
    .option(
      '--client-ca <file>',
      'authority of the client certificates the kubelet routes ask for (default: the one in the kubeconfig)',
    )
    .addOption(packageCacheOption())
    .option('--pod-pids <n>', 'processes and threads one pod may have (default: 1024)', parsePids)
    .option('--broker <host:port>', 'where the model broker listens, for the Service corral-broker')
    .addOption(new Option('--isolation <tier>', 'insist on a tier').choices(['bubblewrap', 'process']))
    .option('--ready-file <file>', 'write {"node","isolation","pid"} there when ready')
    .addOption(logLevel())
    .action(async (options: NodeCommandOptions) => (await import('../platform/run-node.js')).runNode(options))
  const server = program
    .command('server')
    .summary('only tasks, broker and HTTP API, on any cluster')
    .requiredOption('--kubeconfig <file>', 'the cluster; in a cluster leave its value empty for the ServiceAccount')
    .option('--data-dir <dir>', 'where event logs and mirrors are kept')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'port of the HTTP API', parsePort, 0)
    .addOption(
      new Option(
        '--allow-host <name>',
        'host name of an Ingress or tunnel that requests may come by; repeat it for more',
      )
        .argParser(collected)
        .default([], 'loopback, --host and the Service')
        .env('CORRAL_ALLOW_HOSTS'),
    )
    .option('--broker-port <port>', 'port of the model broker', parsePort, brokerServicePort)
    .option('--namespace <name>', 'namespace of tasks and sandboxes', platformNamespace)
    .option('--max-tasks <n>', 'tasks that run at once', parseAtOnce, 10)
    .option('--max-held <n>', 'sandboxes held for follow-ups at once; the oldest goes first', parseAtOnce, 5)
    .addOption(archiveBudgetOption())
    .option(
      '--provider <name>',
      'cluster of tasks that name none, as `corral provider add` named it (default: this one)',
    )
    .option('--agent <name>', 'agent of tasks that name none', defaultAgentName)
    .option(
      '--author <"name <email>">',
      'who commits where neither task nor project says (default: Corral <corral@localhost>)',
    )
    .option('--local-repositories', 'let tasks name repositories on the disk of this machine, by path or file://')
    .option(
      '--parts <list>',
      '"http" answers requests, "controller" reconciles tasks and runs the model broker; several processes may have either',
      parseParts,
      ['http', 'controller'],
    )
    .option(
      '--metrics-address <host:port>',
      'serve /metrics, /healthz, /startupz and /readyz there without a token, with every --parts; :9090 for every address',
      parseListenAddress,
    )
    .option(
      '--external-metrics-address <host:port>',
      'serve external.metrics.k8s.io there, for a HorizontalPodAutoscaler, where --external-metrics-tls holds a certificate',
      parseListenAddress,
    )
    .option(
      '--external-metrics-tls <dir>',
      'directory with tls.crt and tls.key, e.g. a mounted Secret',
      '/etc/corral-external-metrics',
    )
    .option(
      '--token-file <file>',
      'token of the HTTP API, e.g. from a mounted Secret (default: one of the data directory)',
    )
    .option('--broker-secret-file <file>', 'secret behind the tokens of agents (default: one of the data directory)')
    .option(
      '--warm <n>',
      'make the default template and pool where they are missing, with n sandboxes ready',
      parseAtOnce,
    )
    .option(
      '--egress-by-name',
      'nodes are `corral node`s, which let tasks reach the addresses they are granted by name',
    )
    .addOption(
      new Option(
        '--reach <way>',
        'how sandboxes are reached: by pod address inside a cluster, else through the API server',
      )
        .choices(['auto', 'port-forward', 'pod-address'])
        .default('auto'),
    )
    .option('--ready-file <file>', 'write {"url","token","metrics","pid"} there when ready')
    .addOption(logLevel())
    .action(async (options: ServerCommandOptions) => (await import('../platform/run-server.js')).runServer(options))
  addDrainCommand(server)
  addRestoreCommand(server)
}
