import { LineSplitter, outputEvent } from '@corral/agents'
import { eventLimits, type TaskEventBody } from '@corral/protocol'
import { runCommand } from '../sandbox/run-command.js'
import { nothingToSetUp, setupScript } from '../sandbox/scripts.js'
import { TaskError } from '../task-error.js'
import type { Step } from './step.js'

const setupTimeoutMs = 20 * 60_000

/** Runs the repository's own set-up (`.corral/setup`) or the request's, with the egress the request grants. */
export const setupStep: Step = async (context) => {
  const { task, signal, eventLog } = context
  const uid = task.metadata.uid
  const { daemon } = await context.openSandbox()
  const workspace = await context.findWorkspace()
  const lines = {
    stdout: new LineSplitter(eventLimits.outputCharacters - 1),
    stderr: new LineSplitter(eventLimits.outputCharacters - 1),
  }
  const emit = async (stream: 'stdout' | 'stderr', pieces: ReturnType<LineSplitter['push']>): Promise<void> => {
    const events = pieces.map((piece) => ({ ...outputEvent(piece, stream), stage: 'setup' }) as TaskEventBody)
    await eventLog.append(uid, events)
  }
  const result = await runCommand(
    daemon,
    `${uid}.setup`,
    {
      argv: ['/bin/sh', '-c', setupScript],
      env: { REPO: workspace.repository, SETUP: task.spec.setup ?? '', CI: 'true', CORRAL_TASK_ID: task.metadata.name },
    },
    {
      signal,
      timeoutMs: setupTimeoutMs,
      timeoutCode: 'SetupTimeout',
      onOutput: (stream, data) => emit(stream, lines[stream].push(data)),
    },
  )
  for (const stream of ['stdout', 'stderr'] as const) await emit(stream, lines[stream].end())
  if (result.exit.exit_code === nothingToSetUp && !task.spec.setup)
    return { condition: 'SetupDone', reason: 'NothingToDo', message: 'the repository has no set-up command' }
  if (result.exit.exit_code !== 0)
    throw new TaskError(
      'SetupFailed',
      `the set-up command ended with exit code ${result.exit.exit_code}: ${result.tail}`,
    )
  return {
    condition: 'SetupDone',
    reason: 'Completed',
    message: 'the set-up command succeeded',
    events: [{ type: 'stage', stage: 'setup', state: 'finished' }],
  }
}
