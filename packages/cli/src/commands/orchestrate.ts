import { type Command, Option } from 'commander'
import { CliError } from '../cli-error.js'
import type { KubeOptions } from '../client/kube-access.js'
import { parseDurationSeconds } from '../output/parse-duration.js'

interface OrchestrateOptions extends KubeOptions {
  template: string
  namespace: string
  taskId: string
  message: string
  timeout: number
  local?: boolean
}

/** `corral orchestrate`: the proof of concept's second phase, one claim from creation to the pod's exit. */
export function addOrchestrateCommand(program: Command): void {
  program
    .command('orchestrate')
    .summary('claim a sandbox, give its runner a task, wait for the exit')
    .description(
      'Creates a claim, waits until it is ready, posts the task to the runner and waits until its pod finished.\nPrints a line of JSON per step; exits 1 on any failure.',
    )
    .option('--template <name>', 'SandboxTemplate', 'poc-runner')
    .option('--namespace <name>', 'namespace', 'default')
    .option('--task-id <id>', 'id of the task', 'poc-task-001')
    .option('--message <text>', 'message of the task', 'Hello from orchestrator')
    .addOption(
      new Option('--timeout <duration>', 'deadline for everything').default(300, '5m').argParser(parseDurationSeconds),
    )
    .option('--local', 'reach the runner through the API’s port-forward instead of cluster DNS')
    .option('--kubeconfig <file>', 'cluster (default: the running platform, else what kubectl would use)')
    .option('--context <name>', 'context of that kubeconfig')
    .option('--data-dir <dir>', 'data directory of the platform')
    .action(orchestrate)
}

async function orchestrate(options: OrchestrateOptions): Promise<void> {
  const { sandboxClient } = await import('../client/kube-access.js')
  const { ensureColdPool, isDeadline, runnerClaim, sendRunnerTask, untilFinished } = await import(
    '../poc/runner-client.js'
  )
  const startedAt = Date.now()
  const signal = AbortSignal.timeout(options.timeout * 1000)
  const step = (message: string, fields: object = {}): void => {
    process.stdout.write(
      `${JSON.stringify({ time: new Date().toISOString(), message, elapsed_ms: Date.now() - startedAt, ...fields })}\n`,
    )
  }
  await using client = await sandboxClient(options)
  const { namespace, template } = options
  const name = `poc-${options.taskId}`
  try {
    const pool = await ensureColdPool(client, template, namespace)
    await client.claims.create(
      runnerClaim({ name, namespace, pool, shutdownTime: new Date(startedAt + options.timeout * 1000) }),
    )
    step('claim created', { claim: name, template })
    const claim = await client.claims.waitForReady(name, { namespace, signal, timeoutMs: options.timeout * 1000 })
    const sandbox = {
      name: claim.status?.sandbox?.name ?? name,
      namespace,
      serviceFQDN: claim.status?.sandbox?.serviceFQDN,
    }
    step('sandbox ready', { sandbox: sandbox.name, ...(sandbox.serviceFQDN ? { fqdn: sandbox.serviceFQDN } : {}) })
    await sendRunnerTask(
      client,
      sandbox,
      { taskId: options.taskId, message: options.message },
      {
        local: options.local === true,
        signal,
        onAttempt: (attempt, error) => step('task not accepted yet', { attempt, error: (error as Error).message }),
      },
    )
    step('task accepted', { task: options.taskId })
    const reason = await untilFinished(client, name, namespace, signal)
    step('pod finished', { reason })
    if (reason !== 'PodSucceeded')
      throw new CliError(`the runner failed (${reason})`, {
        hint: `See its log: kubectl logs ${sandbox.name} -n ${namespace}`,
      })
    step('done')
  } catch (error) {
    if (isDeadline(error, signal))
      throw new CliError(`not done within ${options.timeout} s`, {
        cause: error,
        hint: `See kubectl describe sandboxclaim ${name} -n ${namespace}`,
      })
    throw error
  }
}
