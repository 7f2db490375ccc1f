import type { TaskEventBody } from '@corral/protocol'
import { taskLimits } from '../task-state/task-limits.js'
import type { TaskAction } from './plan.js'
import { isAnnounced, stageOf } from './step-stages.js'

const maxDetailCharacters = 2_000

/** What the log of the task tells of an action. Empty for those that only users of the API see. Pure. */
export function eventsOf(action: TaskAction): TaskEventBody[] {
  switch (action.kind) {
    case 'runStep':
      return isAnnounced(action.step) ? [{ type: 'stage', stage: stageOf[action.step], state: 'started' }] : []
    case 'record':
      return action.condition === 'SandboxReady' ? [ofSandbox('finished', action.message)] : []
    case 'recordWaiting':
      return [ofSandbox('progress', `${action.reason}: ${action.message}`)]
    case 'startAgain': {
      const { message, attempt } = action
      return [ofSandbox('failed', `${message}; trying again with another one (${attempt} of ${taskLimits.attempts})`)]
    }
    default:
      return []
  }
}

function ofSandbox(state: 'finished' | 'progress' | 'failed', detail: string): TaskEventBody {
  return { type: 'stage', stage: 'sandbox', state, detail: detail.slice(0, maxDetailCharacters) }
}
