import { agentsBinDirectory, type BrokerAccess } from '@corral/agents'
import { anySignal, type DaemonClient, type ProcessExitRecord } from '@corral/protocol'
import { defaultTaskTimeoutSeconds, errorCode } from '@corral/resources'
import { mcpServersOf } from '../agent-spec.js'
import { writeClientFiles } from '../environment/package-clients.js'
import { environmentVariables, pathEntries, withPath } from '../environment/path-entries.js'
import { startBackground } from '../environment/services/background.js'
import { runnableService } from '../environment/services/ready-made.js'
import { agentRunOf, logPartOf, processIdOf, runKeyOf } from '../plan-approval/agent-run.js'
import { namedEvents } from '../questions/inbox-entries.js'
import { questionExpiredMessage } from '../questions/question-status.js'
import { runCommand } from '../sandbox/run-command.js'
import type { SandboxSession } from '../sandbox/sandbox-session.js'
import { TaskError } from '../task-error.js'
import { inboxDirectory, startTalk } from './agent-talk.js'
import { takeCheckpoints } from './checkpoints.js'
import { followOutput } from './follow-output.js'
import { outputCaps } from './output-caps.js'
import { proposedPlan } from './proposed-plan.js'
import { beginSession, endSession } from './session-steps.js'
import type { Step, StepContext, StepOutcome } from './step.js'

/** Time an agent gets to put its things away before it is killed. */
const stopGraceMs = 10_000

/** Starts the agent under the task's uid: however often this runs, there is one run. */
export const startAgentStep: Step = async (context) => {
  const { task, adapter, signal } = context
  const { daemon } = await context.openSandbox()
  const id = processIdOf(task)
  if (!(await daemon.findProcess(id, { signal }))) {
    const broker = await brokerAccess(context)
    await checkInstalled(daemon, context)
    const { hasPackages } = await context.enterPhase('agent')
    const packages = hasPackages ? context.packageClients : undefined
    if (packages) await writeClientFiles(daemon, packages, task.metadata.uid, signal)
    const { start = [] } = task.status?.environment ?? {}
    const workspace = await context.findWorkspace()
    await startBackground(
      daemon,
      context,
      start.map((command) => runnableService(command, workspace.scratch)),
    )
    const { instructions } = task.spec
    const { prompt, resume } = await beginSession(daemon, context)
    const launch = adapter.launch({
      taskId: task.metadata.name,
      prompt,
      workDir: workspace.repository,
      stateDir: workspace.scratch,
      options: context.agentOptions,
      mcpServers: mcpServersOf(task),
      mode: agentRunOf(task).mode,
      inboxDir: inboxDirectory(workspace.scratch, runKeyOf(task)),
      ask: task.spec.ask,
      ...(instructions ? { instructions } : {}),
      ...(resume ? { resume } : {}),
      ...(broker ? { broker } : {}),
    })
    for (const file of launch.files)
      await daemon.writeFile(file.path, file.content, { mode: file.mode, mkdirs: true, signal })
    const { cwd } = launch
    const { argv, env } = withPath(launch.argv, pathEntries(task, workspace.repository))
    const environment = { ...packages?.env, ...environmentVariables(task), ...env, ...launch.env }
    await daemon.startProcess(id, { argv, env: environment, cwd, stdin: 'null' }, { signal })
  }
  return {
    condition: 'AgentStarted',
    reason: 'Started',
    message: `agent ${adapter.name}`,
    events: [{ type: 'stage', stage: 'agent', state: 'started', detail: adapter.name }],
  }
}

/** What the agent needs for its model, with the way to the broker open. */
export async function brokerAccess(context: StepContext): Promise<BrokerAccess | undefined> {
  const { adapter, task, broker } = context
  const model = await context.findModel()
  if (!model) return undefined
  const { provider } = model
  if (!model.isUsable)
    throw new TaskError('ModelKeyMissing', `agent "${adapter.name}" needs a key for ${provider.title}`, {
      hint: `Set it with \`corral secret set ${provider.secret}\`, then retry.`,
    })
  const session = await context.openSandbox()
  await session.passBroker?.({ isAwaited: true })
  return { baseUrl: broker.baseUrl, token: broker.tokenFor(task.metadata.uid), kind: provider.kind }
}

async function checkInstalled(daemon: DaemonClient, { adapter, task, signal }: StepContext): Promise<void> {
  if (!adapter.install) return
  const { program } = adapter.install
  const found = await runCommand(
    daemon,
    `${task.metadata.uid}.which`,
    {
      argv: ['/bin/sh', '-c', 'PATH="$PATH:$AGENTS"; command -v -- "$PROGRAM"'],
      env: { PROGRAM: program, AGENTS: agentsBinDirectory },
    },
    { signal, isRepeatable: true, timeoutMs: 30_000 },
  )
  if (found.exit.exit_code !== 0)
    throw new TaskError('AgentNotInstalled', `"${program}" is not in the sandbox`, {
      hint: `Install it with \`corral agent install ${adapter.name}\`, then retry.`,
    })
}

/** Reads the agent's output to its end and keeps what it means. After a restart only what is new is appended. */
export const followAgentStep: Step = async (context) => {
  const session = await context.openSandbox()
  const { daemon } = session
  await keepBroker(session, context)
  const over = new AbortController()
  const checkpoints = takeCheckpoints(daemon, context, anySignal([context.signal, over.signal]))
  const refusals = context.watchRefusals()
  try {
    return await follow(daemon, context)
  } finally {
    over.abort()
    await refusals.stop()
    await checkpoints
  }
}

/** Keeps the agent's way to the broker open while it is watched; an agent that runs is not ended because it broke. */
export async function keepBroker(session: SandboxSession, context: StepContext): Promise<void> {
  if (!session.passBroker || !(await context.findModel())) return
  await session.passBroker({ isAwaited: false }).catch((error: unknown) => {
    context.log.warn('the way to the broker did not open', { error })
  })
}

/** Ends the agent, gently first, and keeps its last words. */
export const stopAgentStep: Step = async (context) => {
  const { daemon } = await context.openSandbox()
  const id = processIdOf(context.task)
  const signalAgent = async (name: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    // Already ended is what we want; a lost line shows in `follow`.
    await daemon.signal(id, name, { timeoutMs: 5_000, signal: context.signal }).catch(() => undefined)
  }
  await signalAgent('SIGTERM')
  const kill = setTimeout(() => void signalAgent('SIGKILL'), stopGraceMs)
  try {
    const outcome = await follow(daemon, context)
    const reason = context.reason ?? 'Cancelled'
    return { ...outcome, reason, message: stopMessage(reason, context) }
  } finally {
    clearTimeout(kill)
  }
}

function stopMessage(reason: string, { task }: StepContext): string {
  if (reason === 'QuestionExpired') return questionExpiredMessage(task)
  if (reason === 'Timeout')
    return `the agent ran longer than ${task.spec.timeoutSeconds ?? defaultTaskTimeoutSeconds} s`
  return 'the task was cancelled'
}

/** The agent ended with its sandbox's processes. The sandbox's disk is still there, so what it left is collected. */
async function unseenEnd(
  cause: string | undefined,
  detail: string | undefined,
  context: StepContext,
): Promise<StepOutcome> {
  const isOom = (await context.whySandboxEnded()) === 'OOMKilled'
  const reason = cause ?? (isOom ? 'OutOfMemory' : 'SandboxLost')
  const message = isOom
    ? 'the sandbox ran out of memory and was restarted under the agent'
    : `the sandbox's processes ended under the agent (${detail ?? 'no exit was seen'})`
  return {
    condition: 'AgentFinished',
    reason,
    message,
    events: [
      { type: 'error', code: reason, message },
      { type: 'stage', stage: 'agent', state: 'failed', detail: message },
    ],
  }
}

async function follow(daemon: DaemonClient, context: StepContext): Promise<StepOutcome> {
  const { task, adapter, eventLog, record, signal } = context
  const uid = task.metadata.uid
  const parser = adapter.createParser()
  // The parser gives the same events for the same bytes, so the first ones are those the log already has.
  const run = agentRunOf(task)
  let known = (await eventLog.tail(uid)).agentEvents - run.eventsBefore
  const keepNew = async (parsed: ReturnType<typeof parser.push>): Promise<void> => {
    const events = namedEvents(runKeyOf(task), parsed)
    const fresh = events.slice(Math.min(known, events.length))
    known -= events.length - fresh.length
    if (fresh.length === 0) return
    await eventLog.append(uid, fresh, 'agent')
    context.progress()
  }
  const talk = await startTalk(daemon, context, { run: runKeyOf(task), processId: processIdOf(task) })
  const raw = await record.openWriter(logPartOf(run.number))
  let exit: ProcessExitRecord | undefined
  try {
    exit = await followOutput({
      daemon,
      processId: processIdOf(task),
      parser,
      log: raw,
      onEvents: keepNew,
      talk,
      caps: outputCaps,
      signal,
    })
  } catch (error) {
    // Half of what filled the disk makes way for the record of how the task ended.
    if (errorCode(error) === 'DiskFull') await raw.dropHalf()
    throw error
  } finally {
    await talk?.stop()
    await raw.close()
  }
  const read = talk?.status()
  // The daemon says so when it had no room to note what it saw.
  const isDiskFull = exit?.message?.includes('disk of the sandbox is full') === true
  if (!exit || exit.exit_code < 0)
    return { ...(await unseenEnd(isDiskFull ? 'DiskFull' : undefined, exit?.message, context)), status: { ...read } }
  await keepNew(parser.end({ exitCode: exit.exit_code, signal: exit.signal }))
  const { verdict } = parser
  const session = await endSession(daemon, context, parser.sessionId)
  const plan = verdict.ok && run.mode === 'plan' ? proposedPlan(context, parser.finalText) : undefined
  if (plan)
    return {
      ...plan,
      status: { exitCode: exit.exit_code, ...read, ...session.status, ...plan.status },
      events: [...session.events, ...(plan.events ?? [])],
    }
  const cause = verdict.ok ? 'Completed' : isDiskFull ? 'DiskFull' : verdict.cause
  return {
    condition: 'AgentFinished',
    reason: cause,
    message: verdict.ok ? 'the agent finished' : verdict.message,
    status: { exitCode: exit.exit_code, ...read, ...session.status },
    oomKills: exit.oom_kills,
    events: [
      ...session.events,
      {
        type: 'stage',
        stage: 'agent',
        state: verdict.ok ? 'finished' : 'failed',
        detail: `exit code ${exit.exit_code}`,
      },
    ],
  }
}
