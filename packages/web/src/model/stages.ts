import type { TaskTimes } from '@corral/protocol'
import { hasEnded } from './status-words.js'

export interface Stage {
  readonly stage: string
  readonly state: 'done' | 'active' | 'failed' | 'waiting' | 'skipped'
  readonly fromMs?: number
  readonly toMs?: number
}

const steps: readonly [stage: string, from: keyof TaskTimes, to: keyof TaskTimes][] = [
  ['sandbox', 'provisioning_at', 'sandbox_ready_at'],
  ['repository', 'sandbox_ready_at', 'repository_ready_at'],
  ['setup', 'repository_ready_at', 'setup_done_at'],
  ['agent', 'running_at', 'agent_finished_at'],
  ['result', 'agent_finished_at', 'result_collected_at'],
  ['push', 'result_collected_at', 'pushed_at'],
]

/** The way of a task from its times: what is done, what goes on, where it failed. */
export function stagesOf(
  task: { status: string; times?: TaskTimes | undefined },
  failedStage: string | undefined,
): Stage[] {
  const { times = {}, status } = task
  const isOver = hasEnded(status)
  let isReached = true
  return steps.map(([stage, from, to]) => {
    const [start, end] = [at(times[from]), at(times[to])]
    const span = { ...(start === undefined ? {} : { fromMs: start }), ...(end === undefined ? {} : { toMs: end }) }
    if (stage === failedStage || (isOver && failedStage === 'claim' && stage === 'sandbox')) {
      isReached = false
      return { stage, state: 'failed', ...span }
    }
    if (end !== undefined) return { stage, state: 'done', ...span }
    const isNext = isReached
    isReached = false
    if (isOver) return { stage, state: 'skipped' }
    // Between two stages the next one counts as begun: the page shows where the task is, not a gap.
    return isNext && status !== 'QUEUED' && status !== 'DRAFT'
      ? { stage, state: 'active', ...span }
      : { stage, state: 'waiting' }
  })
}

const at = (time: string | undefined): number | undefined => (time ? Date.parse(time) : undefined)
