import { OutputJoiner } from '@corral/agents'
import type { AgentEvent, DaemonClient, TaskEventBody } from '@corral/protocol'
import { defaultSetupTimeoutSeconds } from '@corral/resources'
import { missingProgramHint } from '../environment/missing-program.js'
import type { PhaseNetwork } from '../environment/network-phase.js'
import { mirroredScopes, writeClientFiles } from '../environment/package-clients.js'
import { environmentVariables, pathEntries } from '../environment/path-entries.js'
import type { SandboxContext } from '../environment/sandbox-context.js'
import { startBackground } from '../environment/services/background.js'
import { runnableService } from '../environment/services/ready-made.js'
import { serviceHome } from '../environment/services/service-home.js'
import { endSetupScript, listProcessesScript } from '../environment/setup-processes.js'
import { setupSecrets } from '../environment/setup-secrets.js'
import { watchSilence } from '../environment/silence-watch.js'
import { refusedHint } from '../environment/watch-refusals.js'
import { isDiskFullText } from '../repository/git-failure.js'
import { markSetupScript } from '../sandbox/collect-script.js'
import { collectEnvironment } from '../sandbox/collected-work.js'
import { runCommand } from '../sandbox/run-command.js'
import { nothingToSetUp, setupScript } from '../sandbox/scripts.js'
import { finalFailure, TaskError } from '../task-error.js'
import { collectRequest } from './collect-work.js'
import { EventBudget, leftOut, outputCaps } from './output-caps.js'
import { setupFailureMessage } from './setup-failure.js'
import type { Step, StepContext } from './step.js'

/**
 * Runs the repository's own set-up (`.corral/setup`) or the request's, with the egress the request grants. On a snapshot that has
 * all of it only services are started; on one with other lock files what changed is brought up to date.
 */
export const setupStep: Step = async (context) => {
  const { task } = context
  const { snapshot, setup, update, failure } = task.status?.environment ?? {}
  // The build ran the same command in the same kind of sandbox.
  if (failure)
    throw new TaskError(failure.code, failure.message, {
      ...(failure.hint ? { hint: failure.hint } : {}),
      details: finalFailure,
    })
  if (snapshot?.exact) {
    await startServices(context)
    await markSetup(context)
    const message = `set up already: snapshot ${snapshot.name}, built ${snapshot.builtAt}`
    const event = { type: 'stage', stage: 'setup', state: 'finished', detail: message } as const
    return { condition: 'SetupDone', reason: 'FromSnapshot', message, events: [event] }
  }
  const command = task.spec.setup ?? (snapshot ? (update ?? setup) : setup)
  if ((await runSetup(context, command)) === 'nothing')
    return { condition: 'SetupDone', reason: 'NothingToDo', message: 'the repository has no set-up command' }
  await markSetup(context)
  return {
    condition: 'SetupDone',
    reason: snapshot ? 'Updated' : 'Completed',
    message: snapshot ? `snapshot ${snapshot.name} was brought up to date` : 'the set-up command succeeded',
    events: [{ type: 'stage', stage: 'setup', state: 'finished' }],
  }
}

/** Starts what has to be there before set-up. Safe to repeat. */
async function startServices(context: SandboxContext): Promise<void> {
  const { daemon } = await context.openSandbox()
  const home = serviceHome(await context.findWorkspace())
  const services = (context.task.status?.environment?.services ?? []).map((service) => runnableService(service, home))
  await startBackground(daemon, context, services)
}

/** Runs a set-up command, or `.corral/setup` where there is none, to its end. Throws a cause of ours where it fails. */
export async function runSetup(context: SandboxContext, command: string | undefined): Promise<'done' | 'nothing'> {
  const { task, signal, eventLog } = context
  const uid = task.metadata.uid
  const { daemon } = await context.openSandbox()
  const workspace = await context.findWorkspace()
  const secrets = await setupSecrets(task, context.findSecret)
  const hasSecrets = Object.keys(secrets.env).length > 0
  const output = { stdout: new OutputJoiner('stdout'), stderr: new OutputJoiner('stderr') }
  const budget = new EventBudget(outputCaps.setupEventBytes)
  const emit = async (events: AgentEvent[]): Promise<void> => {
    const kept = budget.take(events).map((event) => {
      const shown = event.type === 'output' ? { ...event, text: secrets.redact(event.text) } : event
      return { ...shown, stage: 'setup' } as TaskEventBody
    })
    if (kept.length > 0) await eventLog.append(uid, kept)
  }
  const hasServices = (task.status?.environment?.services ?? []).length > 0
  if (!command && !hasServices && !(await daemon.statFile(`${workspace.repository}/.corral/setup`, { signal })))
    return 'nothing'
  const network = await context.enterPhase('setup')
  const packages = network.hasPackages ? context.packageClients : undefined
  if (packages) await writeClientFiles(daemon, packages, uid, signal)
  const scopes = packages
    ? await mirroredScopes(daemon, packages, { repository: workspace.repository, taskUid: uid }, signal)
    : []
  await startServices(context)
  const before = hasSecrets ? await listProcesses(context, daemon) : ''
  const { result, refused } = await watched(context, (heard) =>
    runCommand(
      daemon,
      `${uid}.setup`,
      {
        argv: ['/bin/sh', '-c', setupScript],
        env: {
          ...packages?.env,
          ...environmentVariables(task),
          ...secrets.env,
          REPO: workspace.repository,
          SETUP: command ?? '',
          CORRAL_PATH: pathEntries(task, workspace.repository),
          ...(scopes.length > 0 ? { CORRAL_NPM_SCOPES: scopes.join(' ') } : {}),
          ...(wantsPython(task) ? { CORRAL_PYTHON: '1' } : {}),
          CI: 'true',
          CORRAL_TASK_ID: task.metadata.name,
        },
      },
      {
        signal,
        timeoutMs: (task.spec.setupTimeoutSeconds ?? defaultSetupTimeoutSeconds) * 1000,
        timeoutCode: 'SetupTimeout',
        onOutput: (stream, data) => {
          heard()
          return emit(output[stream].push(data))
        },
      },
    ),
  )
  for (const joiner of Object.values(output)) await emit(joiner.end())
  if (hasSecrets) await endSetup(context, daemon, before)
  if (budget.leftOutBytes > 0) await eventLog.append(uid, [leftOut(budget.leftOutBytes, 'of the set-up’s output')])
  if (result.exit.exit_code === nothingToSetUp && !command) return 'nothing'
  if (result.exit.exit_code !== 0 && isDiskFullText(`${result.exit.message ?? ''} ${result.tail}`))
    throw new TaskError('DiskFull', `set-up filled the disk: ${secrets.redact(result.tail)}`, { details: finalFailure })
  if (result.exit.exit_code < 0)
    throw new TaskError('SandboxLost', `the sandbox's processes ended during set-up (${secrets.redact(result.tail)})`)
  if (result.exit.exit_code !== 0)
    throw new TaskError(
      'SetupFailed',
      setupFailureMessage(task, { exitCode: result.exit.exit_code, tail: secrets.redact(result.tail) }),
      setupHint(context, network, refused, result.tail),
    )
  return 'done'
}

/** Who asks for Python calls it `python`, as everywhere but on Debian. */
const wantsPython = ({ status }: SandboxContext['task']): boolean =>
  status?.environment?.tools?.some(({ name }) => name === 'python') === true

/** A tool that is not there is why set-up failed, more often than not; in a cluster, a registry that cannot be reached. */
function setupHint(
  { task }: SandboxContext,
  { isUnsupported }: PhaseNetwork,
  refused: readonly string[],
  tail: string,
): { hint?: string } {
  const missing = (task.status?.warnings ?? []).filter(({ code }) => code === 'ToolMissing')
  const network =
    'Set-up reaches what the NetworkPolicy of the sandbox template opens: this cluster has no package mirror, and opens nothing by name.'
  const hints = [
    ...missing.map(({ message }) => message),
    ...(isUnsupported ? [network] : []),
    ...[refusedHint(refused, task), missing.length > 0 ? undefined : missingProgramHint(tail)].flatMap(
      (hint) => hint ?? [],
    ),
  ]
  return hints.length > 0 ? { hint: hints.join(' ') } : {}
}

/** What runs before set-up, the services it may need among it. */
async function listProcesses({ task, signal }: SandboxContext, daemon: DaemonClient): Promise<string> {
  const { exit, stdout, tail } = await runCommand(
    daemon,
    `${task.metadata.uid}.before-setup`,
    { argv: ['/bin/sh', '-c', listProcessesScript] },
    { signal, isRepeatable: true, timeoutMs: 60_000 },
  )
  if (exit.exit_code !== 0) throw new TaskError('SandboxLost', `the processes before set-up are not known (${tail})`)
  return stdout.split('\n').join(' ')
}

async function endSetup({ task, signal }: SandboxContext, daemon: DaemonClient, before: string): Promise<void> {
  const { exit, tail } = await runCommand(
    daemon,
    `${task.metadata.uid}.end-setup`,
    { argv: ['/bin/sh', '-c', endSetupScript], env: { CORRAL_KEPT: before } },
    { signal, isRepeatable: true, timeoutMs: 60_000, timeoutCode: 'SetupFailed' },
  )
  if (exit.exit_code !== 0) throw new TaskError('SetupFailed', tail)
}

/** While it works, what is refused to it is told, and that it is silent. `heard` is called with each output. */
async function watched<T extends { exit: { exit_code: number } }>(
  context: SandboxContext,
  work: (heard: () => void) => Promise<T>,
): Promise<{ result: T; refused: readonly string[] }> {
  const refusals = context.watchRefusals()
  const silence = watchSilence(context)
  try {
    const result = await work(silence.heard)
    return { result, refused: result.exit.exit_code > 0 ? await refusals.settled() : [] }
  } finally {
    silence.stop()
    await refusals.stop()
  }
}

/** Remembers what set-up left behind, so that it does not count as work of the agent. Not vital: a failure is logged. */
async function markSetup(context: StepContext): Promise<void> {
  const { task, signal } = context
  const { daemon } = await context.openSandbox()
  const request = await collectRequest(context, task.status?.baseCommit ?? '', 'mark-setup')
  const { exit, tail } = await runCommand(
    daemon,
    `${task.metadata.uid}.mark-setup`,
    {
      argv: ['/bin/sh', '-c', markSetupScript],
      keep: 'memory',
      env: { ...collectEnvironment(request), FROM_SNAPSHOT: task.status?.environment?.snapshot?.exact ? 'yes' : '' },
    },
    { signal, isRepeatable: true, timeoutMs: 5 * 60_000 },
  )
  if (exit.exit_code !== 0) context.log.warn('what set-up left could not be marked', { output: tail })
}
