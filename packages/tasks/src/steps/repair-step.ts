import { isCapable } from '@corral/agents'
import { anySignal, type DaemonClient, type ProcessExitRecord } from '@corral/protocol'
import { mcpServersOf } from '../agent-spec.js'
import { repairMessage, repairPrompt } from '../checks/repair-message.js'
import { checksOf, timeoutMsOf } from '../checks/task-checks.js'
import { environmentVariables, pathEntries, withPath } from '../environment/path-entries.js'
import { namedEvents } from '../questions/inbox-entries.js'
import { TaskError } from '../task-error.js'
import { brokerAccess, keepBroker } from './agent-steps.js'
import { inboxDirectory, startTalk } from './agent-talk.js'
import { logName } from './check-step.js'
import { takeCheckpoints } from './checkpoints.js'
import { followOutput } from './follow-output.js'
import { outputCaps } from './output-caps.js'
import { endSession } from './session-steps.js'
import type { Step, StepContext, StepOutcome } from './step.js'

/** Time an agent gets to put its things away before it is killed. */
const stopGraceMs = 10_000

/** Sends the agent back with what the last round of checks found, and follows it to its end. Repeated it joins the run. */
export const repairStep: Step = async (context) => {
  const session = await context.openSandbox()
  const { daemon } = session
  await startRepair(daemon, context)
  await keepBroker(session, context)
  const over = new AbortController()
  const checkpoints = takeCheckpoints(daemon, context, anySignal([context.signal, over.signal]))
  try {
    return await followRepair(daemon, context)
  } finally {
    over.abort()
    await checkpoints
  }
}

/** Ends whatever runs for checks: the agent gently, a check at once. */
export const stopChecksStep: Step = async (context) => {
  const { task, signal } = context
  const { daemon } = await context.openSandbox()
  const { repair, rounds = [] } = task.status?.checks ?? {}
  const send = async (id: string, name: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    // Already ended is what we want; what was never started has no end to wait for.
    await daemon.signal(id, name, { timeoutMs: 5_000, signal }).catch(() => undefined)
  }
  const reason = context.reason ?? 'Cancelled'
  const message = context.endMessage ?? 'the task was cancelled'
  const ended: StepOutcome = { condition: 'ChecksDone', reason, message }
  if (!repair) {
    for (const index of checksOf(task).keys())
      await send(`${task.metadata.uid}.check-${rounds.length + 1}-${index + 1}`, 'SIGKILL')
    return { ...ended, events: [stoppedEvent(message)] }
  }
  const id = repairId(context)
  if (!(await daemon.findProcess(id, { signal }))) return { ...ended, events: [stoppedEvent(message)] }
  await send(id, 'SIGTERM')
  const kill = setTimeout(() => void send(id, 'SIGKILL'), stopGraceMs)
  try {
    const { status, events = [] } = await followRepair(daemon, context)
    return { ...ended, ...(status ? { status } : {}), events: [...events, stoppedEvent(message)] }
  } finally {
    clearTimeout(kill)
  }
}

const stoppedEvent = (detail: string) => ({ type: 'stage', stage: 'checks', state: 'failed', detail }) as const

function repairKey({ task }: StepContext): string {
  return `repair-${task.status?.checks?.repair?.round ?? 0}`
}

function repairId(context: StepContext): string {
  return `${context.task.metadata.uid}.${repairKey(context)}`
}

async function startRepair(daemon: DaemonClient, context: StepContext): Promise<void> {
  const { task, adapter, signal } = context
  const id = repairId(context)
  if (await daemon.findProcess(id, { signal })) return
  const broker = await brokerAccess(context)
  const packages = (await context.enterPhase('agent')).hasPackages ? context.packageClients : undefined
  const workspace = await context.findWorkspace()
  const message = repairMessage(await failedChecks(context))
  const sessionId = task.status?.session?.id
  const goesOn = sessionId !== undefined && isCapable(adapter.capabilities, 'resume')
  const launch = adapter.launch({
    taskId: task.metadata.name,
    prompt: goesOn ? message : repairPrompt(task.spec.prompt, message),
    workDir: workspace.repository,
    stateDir: workspace.scratch,
    options: context.agentOptions,
    mcpServers: mcpServersOf(task),
    inboxDir: inboxDirectory(workspace.scratch, repairKey(context)),
    ask: task.spec.ask,
    ...(task.spec.instructions ? { instructions: task.spec.instructions } : {}),
    ...(goesOn ? { resume: { sessionId } } : {}),
    ...(broker ? { broker } : {}),
  })
  for (const file of launch.files)
    await daemon.writeFile(file.path, file.content, { mode: file.mode, mkdirs: true, signal })
  const { cwd } = launch
  const { argv, env: path } = withPath(launch.argv, pathEntries(task, workspace.repository))
  const env = { ...packages?.env, ...environmentVariables(task), ...path, ...launch.env }
  await daemon.startProcess(id, { argv, env, cwd, stdin: 'null' }, { signal })
}

/** What failed in the last round, with as much of its output as was kept. */
async function failedChecks({ task, record }: StepContext): Promise<Parameters<typeof repairMessage>[0]> {
  const last = task.status?.checks?.rounds?.at(-1)
  if (!last) throw new TaskError('InternalError', 'the round of checks was not recorded')
  const commands = new Map(checksOf(task).map((check) => [check.name, check]))
  return Promise.all(
    last.results
      .filter(({ outcome }) => outcome !== 'passed')
      .map(async ({ name, outcome, exitCode, output = '' }) => {
        const check = commands.get(name)
        const chunks: Uint8Array[] = []
        for await (const chunk of record.read(`artifact/${logName(last.round, name)}`)) chunks.push(chunk)
        return {
          name,
          command: check?.command ?? '',
          how:
            outcome === 'timed_out' && check ? `no end within ${timeoutMsOf(check) / 1000} s` : `exit code ${exitCode}`,
          output: chunks.length > 0 ? Buffer.concat(chunks).toString('utf8').trimEnd() : output,
        }
      }),
  )
}

async function followRepair(daemon: DaemonClient, context: StepContext): Promise<StepOutcome> {
  const { task, adapter, eventLog, record, signal } = context
  const uid = task.metadata.uid
  const { repair, ...checks } = task.status?.checks ?? {}
  const parser = adapter.createParser()
  // The parser gives the same events for the same bytes, so the first ones are those the log already has of this run.
  let known = Math.max(0, (await eventLog.tail(uid)).agentEvents - (repair?.agentEventsBefore ?? 0))
  const keepNew = async (parsed: ReturnType<typeof parser.push>): Promise<void> => {
    const events = namedEvents(repairKey(context), parsed)
    const fresh = events.slice(Math.min(known, events.length))
    known -= events.length - fresh.length
    if (fresh.length === 0) return
    await eventLog.append(uid, fresh, 'agent')
    context.progress()
  }
  const processId = repairId(context)
  const talk = await startTalk(daemon, context, { run: repairKey(context), processId })
  const log = await record.openWriter(`artifact/repair-${repair?.round ?? 0}.log`)
  const followed = { daemon, processId, parser, log, onEvents: keepNew, talk, caps: outputCaps, signal }
  let exit: ProcessExitRecord | undefined
  try {
    exit = await followOutput(followed)
  } finally {
    await talk?.stop()
    await log.close()
  }
  if (!exit || exit.exit_code < 0)
    throw new TaskError('SandboxLost', 'the sandbox’s processes ended under the agent that was sent back')
  await keepNew(parser.end({ exitCode: exit.exit_code, signal: exit.signal }))
  const { verdict } = parser
  const session = await endSession(daemon, context, parser.sessionId)
  const usedMs = repair ? Math.max(0, Date.parse(exit.time) - Date.parse(repair.startedAt)) : 0
  const status = {
    ...talk?.status(),
    ...session.status,
    exitCode: exit.exit_code,
    artifacts: await record.list('artifact'),
    checks: { ...checks, repairsMs: (checks.repairsMs ?? 0) + usedMs },
  }
  if (!verdict.ok)
    return {
      condition: 'ChecksDone',
      reason: verdict.cause,
      message: verdict.message,
      status,
      events: [...session.events, { type: 'stage', stage: 'checks', state: 'failed', detail: verdict.message }],
    }
  return {
    condition: 'ChecksDone',
    conditionStatus: 'Unknown',
    reason: 'Repaired',
    message: `the agent answered the checks of round ${repair?.round ?? 0}`,
    status,
    events: session.events,
  }
}
