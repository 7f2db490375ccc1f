import { createWriteStream } from 'node:fs'
import { stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { agentsBinDirectory } from '@corral/agents'
import type { DaemonClient, ProcessExitRecord } from '@corral/protocol'
import { runCommand } from '../sandbox/run-command.js'
import { TaskError } from '../task-error.js'
import type { Step, StepContext, StepOutcome } from './step.js'

/** Time an agent gets to put its things away before it is killed. */
const stopGraceMs = 10_000

/** Starts the agent under the task's uid: however often this runs, there is one run. */
export const startAgentStep: Step = async (context) => {
  const { task, adapter, signal } = context
  const { daemon } = await context.openSandbox()
  const uid = task.metadata.uid
  if (!(await daemon.findProcess(uid, { signal }))) {
    if (adapter.provider && !(await context.hasModelKey()))
      throw new TaskError('ModelKeyMissing', `agent "${adapter.name}" needs a key for ${adapter.provider}`)
    await checkInstalled(daemon, context)
    const workspace = await context.findWorkspace()
    const launch = adapter.command({
      taskId: task.metadata.name,
      prompt: task.spec.prompt,
      workDir: workspace.repository,
      stateDir: workspace.scratch,
      command: task.spec.agent.command,
      model: task.spec.agent.model,
      ...(adapter.provider ? { broker: { baseUrl: context.broker.baseUrl, token: context.broker.tokenFor(uid) } } : {}),
    })
    for (const file of launch.files)
      await daemon.writeFile(file.path, file.content, { mode: file.mode, mkdirs: true, signal })
    const stdin = launch.stdin === undefined ? 'null' : 'open'
    await daemon.startProcess(
      uid,
      { argv: [...launch.argv], env: { ...launch.env }, cwd: launch.cwd, stdin },
      { signal },
    )
    if (launch.stdin !== undefined) await daemon.writeStdin(uid, launch.stdin, { eof: true, signal })
  }
  return {
    condition: 'AgentStarted',
    reason: 'Started',
    message: `agent ${adapter.name}`,
    events: [{ type: 'stage', stage: 'agent', state: 'started', detail: adapter.name }],
  }
}

async function checkInstalled(daemon: DaemonClient, { adapter, task, signal }: StepContext): Promise<void> {
  if (!adapter.requires) return
  const { program, install } = adapter.requires
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
      hint: `Install it with \`${install}\`, then retry.`,
    })
}

/** Reads the agent's output to its end and keeps what it means. After a restart only what is new is appended. */
export const followAgentStep: Step = async (context) => {
  const { daemon } = await context.openSandbox()
  return follow(daemon, context)
}

/** Ends the agent, gently first, and keeps its last words. */
export const stopAgentStep: Step = async (context) => {
  const { daemon } = await context.openSandbox()
  const uid = context.task.metadata.uid
  const signalAgent = async (name: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    // Already ended is what we want; a lost line shows in `follow`.
    await daemon.signal(uid, name, { timeoutMs: 5_000, signal: context.signal }).catch(() => undefined)
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
  if (reason === 'Timeout') return `the agent ran longer than ${task.spec.timeoutSeconds ?? 1800} s`
  return reason === 'PlatformStopped' ? 'the platform was stopped while the task ran' : 'the task was cancelled'
}

async function follow(daemon: DaemonClient, context: StepContext): Promise<StepOutcome> {
  const { task, adapter, eventLog, signal } = context
  const uid = task.metadata.uid
  const parser = adapter.createParser()
  // The parser gives the same events for the same bytes, so the first ones are those the log already has.
  let known = (await eventLog.tail(uid)).agentEvents
  const keepNew = async (events: ReturnType<typeof parser.push>): Promise<void> => {
    const fresh = events.slice(Math.min(known, events.length))
    known -= events.length - fresh.length
    if (fresh.length > 0) await eventLog.append(uid, fresh, 'agent')
  }
  const rawPath = join(context.taskDirectory, 'agent.log')
  const raw = createWriteStream(rawPath, { mode: 0o600 })
  const rawDone = finished(raw)
  rawDone.catch(() => undefined) // looked at below; a failure in between must not be without an owner
  let exit: ProcessExitRecord | undefined
  try {
    for await (const event of daemon.readOutput(uid, { signal })) {
      if (event.type === 'exit') {
        exit = event.exit
        break
      }
      const drained = new Promise<void>((resolve) => raw.once('drain', resolve))
      if (!raw.write(event.data)) await Promise.race([drained, rawDone])
      await keepNew(parser.push(event.data, event.stream))
    }
  } finally {
    raw.end()
    await rawDone.catch((error: NodeJS.ErrnoException) => rethrowDiskFull(error, rawPath))
  }
  // The daemon says so when it had no room to note what it saw.
  const isDiskFull = exit?.message?.includes('disk of the sandbox is full') === true
  if (!exit || exit.exit_code < 0)
    throw new TaskError(isDiskFull ? 'DiskFull' : 'SandboxLost', exit?.message ?? 'nobody saw how the agent ended')
  await keepNew(parser.end({ exitCode: exit.exit_code, signal: exit.signal }))
  const { verdict } = parser
  const cause = verdict.ok ? 'Completed' : isDiskFull ? 'DiskFull' : verdict.cause
  return {
    condition: 'AgentFinished',
    reason: cause,
    message: verdict.ok ? 'the agent finished' : verdict.message,
    status: { exitCode: exit.exit_code },
    events: [
      {
        type: 'stage',
        stage: 'agent',
        state: verdict.ok ? 'finished' : 'failed',
        detail: `exit code ${exit.exit_code}`,
      },
    ],
  }
}

/** Half of what filled the disk makes way for the record of how the task ended. */
async function rethrowDiskFull(error: NodeJS.ErrnoException, path: string): Promise<void> {
  if (error.code === 'ENOSPC') {
    await truncate(path, Math.floor((await stat(path)).size / 2))
    throw new TaskError('DiskFull', 'the disk is full: the agent log could not be written', { cause: error })
  }
  if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
}
