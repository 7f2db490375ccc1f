import {
  type CheckResult,
  clipText,
  type DaemonClient,
  mergeWarnings,
  type TaskEventBody,
  type TaskWarning,
  taskWarning,
} from '@corral/protocol'
import { type AgentTaskStatus, errorCode } from '@corral/resources'
import { leaveOutScript, listBeforeScript } from '../checks/check-files-script.js'
import { type FailedCheck, repairMessage } from '../checks/repair-message.js'
import { checksOf, repairRoundsOf, timeoutMsOf } from '../checks/task-checks.js'
import { environmentVariables, pathEntries, withPath } from '../environment/path-entries.js'
import { scratchFiles } from '../sandbox/collected-work.js'
import { runCommand } from '../sandbox/run-command.js'
import { TaskError } from '../task-error.js'
import { checkOutput } from './check-output.js'
import type { Step, StepContext, StepOutcome } from './step.js'

type Rounds = NonNullable<NonNullable<AgentTaskStatus['checks']>['rounds']>
type Check = ReturnType<typeof checksOf>[number]

/** What is kept of a check's output: in the record of the round, and as an artifact. */
const shownCharacters = 2 * 1024
const keptBytes = 1024 * 1024

/**
 * Runs every check once, under ids of this round: a repeat joins what ran and finds the same results. A round that failed
 * sends the agent back while rounds are left.
 */
export const checkStep: Step = async (context) => {
  const { task, eventLog, record } = context
  const uid = task.metadata.uid
  const { daemon } = await context.openSandbox()
  const former = task.status?.checks
  const round = (former?.rounds?.length ?? 0) + 1
  // Checks have the network of the agent whose work they judge.
  const packages = (await context.enterPhase('agent')).hasPackages ? context.packageClients?.env : undefined
  const env = { ...packages, ...environmentVariables(task) }
  await listFiles(daemon, context, round)
  const ran: RanCheck[] = []
  for (const [index, check] of checksOf(task).entries()) {
    const one = await runCheck(daemon, context, { check, round, env, id: `${uid}.check-${round}-${index + 1}` })
    await record.write(`artifact/${logName(round, check.name)}`, once(one.output), { signal: context.signal })
    await eventLog.append(uid, [{ type: 'check', round, ...one.result }])
    context.progress()
    ran.push(one)
  }
  const warnings = await leaveOutMade(daemon, context, round)
  const failed = ran.filter(({ result }) => result.outcome !== 'passed')
  const rounds: Rounds = [...(former?.rounds ?? []), roundOf(round, ran)]
  const status: Partial<AgentTaskStatus> = {
    artifacts: await record.list('artifact'),
    ...(warnings.length > 0 ? { warnings: mergeWarnings(task.status?.warnings ?? [], warnings) } : {}),
  }
  const warned: TaskEventBody[] = warnings.map((warning) => ({ type: 'warning', ...warning }))
  if (failed.length === 0)
    return {
      condition: 'ChecksDone',
      reason: 'Passed',
      message: round === 1 ? 'all checks passed' : `all checks passed in round ${round}`,
      status: { ...status, checks: { ...former, rounds } },
      events: [
        ...warned,
        { type: 'check_round', round, passed: true },
        { type: 'stage', stage: 'checks', state: 'finished', detail: `round ${round}` },
      ],
    }
  const names = failed.map(({ result }) => result.name).join(', ')
  if (round > repairRoundsOf(task)) return gaveUp(context, { round, names, rounds, status, warned })
  const message = repairMessage(failed.map(described))
  return {
    condition: 'ChecksDone',
    conditionStatus: 'Unknown',
    reason: 'Repairing',
    message: `failed in round ${round}: ${names}`,
    status: {
      ...status,
      checks: {
        ...former,
        rounds,
        repair: {
          round,
          startedAt: context.now().toISOString(),
          agentEventsBefore: (await eventLog.tail(uid)).agentEvents,
        },
      },
    },
    events: [...warned, { type: 'check_round', round, passed: false, message: clipText(message, 60 * 1024) }],
  }
}

function gaveUp(
  { task }: StepContext,
  found: {
    round: number
    names: string
    rounds: Rounds
    status: Partial<AgentTaskStatus>
    warned: readonly TaskEventBody[]
  },
): StepOutcome {
  const { round, names, rounds, status, warned } = found
  const tries = round === 1 ? 'failed' : `still failed after ${round} rounds`
  return {
    condition: 'ChecksDone',
    reason: 'ChecksFailed',
    message: `checks ${tries}: ${names}`,
    status: { ...status, checks: { ...task.status?.checks, rounds } },
    events: [
      ...warned,
      { type: 'check_round', round, passed: false },
      { type: 'error', code: 'ChecksFailed', message: `checks ${tries}: ${names}` },
      { type: 'stage', stage: 'checks', state: 'failed', detail: names.slice(0, 500) },
    ],
  }
}

interface RanCheck {
  check: Check
  result: CheckResult
  startedAt: string
  finishedAt: string
  output: string
}

async function runCheck(
  daemon: DaemonClient,
  context: StepContext,
  { check, id, round, env }: { check: Check; id: string; round: number; env: Readonly<Record<string, string>> },
): Promise<RanCheck> {
  const { task, signal } = context
  const { repository } = await context.findWorkspace()
  const command = withPath(['/bin/sh', '-c', check.command], pathEntries(task, repository))
  const limitMs = timeoutMsOf(check)
  const known = await daemon.findProcess(id, { signal })
  const ranMs = known ? Math.max(0, context.now().getTime() - Date.parse(known.started_at)) : 0
  let output = Buffer.alloc(0)
  let isOver = false
  const isJoined = known !== undefined
  const told = await checkOutput(context.eventLog, { uid: task.metadata.uid, check: check.name, round, isJoined })
  const exit = await runCommand(
    daemon,
    id,
    {
      argv: command.argv,
      cwd: repository,
      env: {
        ...env,
        ...command.env,
        CI: 'true',
        CORRAL_TASK_ID: task.metadata.name,
        CORRAL_CHECK_ROUND: String(round),
      },
    },
    {
      signal,
      isRepeatable: true,
      timeoutMs: Math.max(1_000, limitMs - ranMs),
      timeoutCode: 'ChecksFailed',
      async onOutput(stream, data) {
        output = Buffer.concat([output, data]).subarray(-keptBytes)
        await told.push(stream, data)
      },
    },
  ).then(
    (result) => result.exit,
    (error: unknown) => {
      if (errorCode(error) !== 'ChecksFailed') throw error
      isOver = true
      return undefined
    },
  )
  await told.end()
  if (exit && exit.exit_code < 0)
    throw new TaskError('SandboxLost', `the sandbox's processes ended during check "${check.name}"`)
  const ran = await daemon.findProcess(id, { signal })
  const startedAt = ran?.started_at ?? context.now().toISOString()
  const finishedAt = exit?.time ?? ran?.exit?.time ?? context.now().toISOString()
  const durationMs = Math.max(0, Date.parse(finishedAt) - Date.parse(startedAt))
  // Killed at the end of its time by a platform that was ended before it could note so.
  isOver ||= exit?.signal === 9 && durationMs >= limitMs
  const text = output.toString('utf8')
  return {
    check,
    startedAt,
    finishedAt,
    output: text,
    result: {
      name: check.name,
      outcome: isOver ? 'timed_out' : exit?.exit_code === 0 ? 'passed' : 'failed',
      ...(exit && !isOver ? { exit_code: exit.exit_code } : {}),
      duration_ms: durationMs,
      ...(text.trim() === '' ? {} : { output: text.trimEnd().slice(-shownCharacters) }),
    },
  }
}

function described({ check, result, output }: RanCheck): FailedCheck {
  const how =
    result.outcome === 'timed_out' ? `no end within ${timeoutMsOf(check) / 1000} s` : `exit code ${result.exit_code}`
  return { name: check.name, command: check.command, how, output }
}

function roundOf(round: number, ran: readonly RanCheck[]): Rounds[number] {
  return {
    round,
    passed: ran.every(({ result }) => result.outcome === 'passed'),
    startedAt: ran[0]?.startedAt ?? '',
    finishedAt: ran.at(-1)?.finishedAt ?? '',
    results: ran.map(({ result }) => ({
      name: result.name,
      outcome: result.outcome,
      ...(result.exit_code === undefined ? {} : { exitCode: result.exit_code }),
      durationMs: result.duration_ms,
      ...(result.output ? { output: result.output } : {}),
    })),
  }
}

export const logName = (round: number, check: string): string => `check-${round}-${check}.log`

async function* once(text: string): AsyncGenerator<Uint8Array> {
  if (text !== '') yield Buffer.from(text)
}

async function listFiles(daemon: DaemonClient, context: StepContext, round: number): Promise<void> {
  await script(daemon, context, { id: `before-checks-${round}`, round, source: listBeforeScript })
}

/** What checks made and git does not ignore is not work of the agent. */
async function leaveOutMade(daemon: DaemonClient, context: StepContext, round: number): Promise<TaskWarning[]> {
  const made = await script(daemon, context, { id: `after-checks-${round}`, round, source: leaveOutScript })
  return made.split('\n').flatMap((path) => (path === '' ? [] : [taskWarning('CheckFileLeftOut', { path })]))
}

async function script(
  daemon: DaemonClient,
  { task, signal, findWorkspace, log }: StepContext,
  { id, round, source }: { id: string; round: number; source: string },
): Promise<string> {
  const { repository, scratch } = await findWorkspace()
  const env = { REPO: repository, LIST: `${scratch}/files-${round}`, EXCLUDE: scratchFiles.excludes(scratch) }
  const { exit, stdout, tail } = await runCommand(
    daemon,
    `${task.metadata.uid}.${id}`,
    { argv: ['/bin/sh', '-c', source], env },
    { signal, isRepeatable: true, timeoutMs: 5 * 60_000 },
  )
  if (exit.exit_code === 0) return stdout
  log.warn('files that checks made could not be told apart', { output: tail })
  return ''
}
