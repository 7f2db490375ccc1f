import type { AgentTaskInput } from '@corral/agents'
import { clipText, type DaemonClient, mergeWarnings, type TaskEventBody, taskWarning } from '@corral/protocol'
import type { AgentTaskStatus } from '@corral/resources'
import { isInPlace } from '../held/hold.js'
import { agentRunOf } from '../plan-approval/agent-run.js'
import { runPrompt, runPromptWithoutSession } from '../plan-approval/run-prompt.js'
import { hasSessions, keepSession, restoreSession } from '../thread/agent-session.js'
import type { StepContext } from './step.js'

/** What a run of the agent begins with: its prompt, and the session of the task before where there is one. */
export async function beginSession(
  daemon: DaemonClient,
  context: StepContext,
): Promise<Pick<AgentTaskInput, 'prompt' | 'resume'>> {
  const { task, adapter, continued, eventLog, signal } = context
  if (agentRunOf(task).number > 1) return goOnWithSession(daemon, context)
  const { prompt, continues } = task.spec
  // A command line has no session to lose: its prompt is what was sent, and nothing else.
  if (!continues || !continued || !hasSessions(adapter)) return { prompt }
  const { scratch } = await context.findWorkspace()
  const { sessionId } = continues
  const isRestored =
    sessionId !== undefined &&
    ((isInPlace(task) && (await isSessionThere(daemon, context, scratch))) ||
      (await restoreSession({ daemon, adapter, record: continued, stateDirectory: scratch, signal })))
  if (isRestored) return { prompt, resume: { sessionId } }
  await eventLog.append(task.metadata.uid, [{ type: 'warning', ...taskWarning('SessionNotResumed') }])
  return { prompt: withoutSession(prompt, await context.findFormerPrompt()) }
}

/** A later run of the same task: the session is still in the sandbox, or in the record of the task. */
async function goOnWithSession(
  daemon: DaemonClient,
  context: StepContext,
): Promise<Pick<AgentTaskInput, 'prompt' | 'resume'>> {
  const { task, adapter, record, signal } = context
  const sessionId = task.status?.session?.id
  if (sessionId === undefined || !hasSessions(adapter)) return { prompt: runPromptWithoutSession(task) }
  const { scratch } = await context.findWorkspace()
  const isThere =
    (await isSessionThere(daemon, context, scratch)) ||
    (await restoreSession({ daemon, adapter, record, stateDirectory: scratch, signal }))
  return isThere ? { prompt: runPrompt(task), resume: { sessionId } } : { prompt: runPromptWithoutSession(task) }
}

/** Whether the sandbox still has the agent's session, from an earlier run or the task that held it. */
async function isSessionThere(
  daemon: DaemonClient,
  { adapter, signal }: StepContext,
  scratch: string,
): Promise<boolean> {
  const paths = adapter.sessions?.paths ?? []
  const found = await Promise.all(paths.map((path) => daemon.statFile(`${scratch}/${path}`, { signal })))
  return found.some((file) => file !== undefined)
}

/** Keeps the session of an agent that has ended. It never fails: what the agent did is worth more than what it said. */
export async function endSession(
  daemon: DaemonClient,
  context: StepContext,
  sessionId: string | undefined,
): Promise<{ status: Pick<AgentTaskStatus, 'session' | 'warnings'>; events: TaskEventBody[] }> {
  const { task, adapter, record, signal } = context
  if (!hasSessions(adapter) || sessionId === undefined || sessionId.length > 200) return { status: {}, events: [] }
  try {
    const { scratch } = await context.findWorkspace()
    const kept = await keepSession({ daemon, adapter, record, stateDirectory: scratch, signal })
    if (kept) return { status: { session: { id: sessionId, sizeBytes: kept.sizeBytes } }, events: [] }
  } catch (error) {
    if (signal.aborted) throw error
    context.log.warn('the session of the agent could not be kept', { error })
  }
  const warning = taskWarning('SessionNotKept')
  return {
    status: { warnings: mergeWarnings(task.status?.warnings ?? [], [warning]) },
    events: [{ type: 'warning', ...warning }],
  }
}

const maxFormerCharacters = 32 * 1024

/** For an agent that does not remember: what came before, then what is asked now. */
export function withoutSession(prompt: string, former: string | undefined): string {
  if (former === undefined) return prompt
  return `You go on with work that was begun earlier; the repository is as it was left. It was asked for:\n\n${clipText(former, maxFormerCharacters)}\n\nNow:\n\n${prompt}`
}
