import type { TaskStage } from '@corral/protocol'
import type { StepName } from './plan.js'

/** The stage of the task, as its log names it, that a step belongs to. */
export const stageOf: Readonly<Record<StepName, TaskStage>> = {
  repository: 'repository',
  setup: 'setup',
  'start-agent': 'agent',
  'follow-agent': 'agent',
  'stop-agent': 'agent',
  check: 'checks',
  repair: 'checks',
  'stop-checks': 'checks',
  collect: 'result',
  push: 'push',
  'take-over': 'result',
  salvage: 'result',
  suspend: 'cleanup',
}

const announced: ReadonlySet<StepName> = new Set([
  'repository',
  'setup',
  'push',
  'check',
  'collect',
  'take-over',
  'salvage',
])

/** Whether the start of a step is told in the log of the task. The agent tells of its own start. */
export function isAnnounced(step: StepName): boolean {
  return announced.has(step)
}
