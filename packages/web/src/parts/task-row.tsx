import type { TaskSummary } from '@corral/protocol'
import type { JSX } from 'preact'
import { repositoryName, statusWord } from '../model/status-words.js'
import { money } from '../model/time-words.js'
import { Age, DiffStat, RunTime, StatusIcon } from './basics.js'

export const rowHeight = 52

/** What there is to know about a task in one line. */
export function TaskRow({ task, onFocus }: { task: TaskSummary; onFocus: () => void }): JSX.Element {
  return (
    <a id={`row-${task.id}`} class="row" href={`/tasks/${encodeURIComponent(task.id)}`} onFocus={onFocus}>
      <StatusIcon status={task.status} />
      <span class="row-text">
        <span class="row-title">{task.title || task.id}</span>
        <span class={`row-sub ${task.cause ? 'is-bad' : ''}`}>{subline(task)}</span>
      </span>
      <span class="chip row-repo">{repositoryName(task.repo)}</span>
      <span class="row-stat">
        <DiffStat task={task} />
      </span>
      <span class="row-cost">{task.usage?.cost_usd !== undefined && money(task.usage.cost_usd)}</span>
      <span class="row-time">
        <RunTime task={task} />
      </span>
      <span class="row-age">
        <Age since={task.created_at} />
      </span>
    </a>
  )
}

/** The most useful thing to say about it now. */
export function subline(task: TaskSummary): string {
  if (task.cause && task.status !== 'SUCCEEDED') return `${task.cause.code}: ${task.cause.message}`
  const { word, tone } = statusWord(task.status)
  if (tone === 'attention') return `${word} · ${task.agent.name}`
  if (task.queue) return `${place(task.queue.position)} in line: ${task.queue.reason}`
  if (task.status === 'PROVISIONING') return `${task.agent.name} · ${preparing(task)}`
  const branch = task.branch ?? (task.pushed ? task.new_branch : undefined)
  if (task.outcome === 'no_changes') return `${task.agent.name} · no changes were needed`
  return [task.agent.name, branch, tone === 'working' ? task.sandbox?.name : undefined].filter(Boolean).join(' · ')
}

function preparing({ times = {} }: TaskSummary): string {
  if (times.setup_done_at) return 'starting the agent'
  if (times.repository_ready_at) return 'running the set-up command'
  return times.sandbox_ready_at ? 'bringing the repository in' : 'waiting for a sandbox'
}

function place(position: number): string {
  const ending = position % 100 > 10 && position % 100 < 14 ? 'th' : (['th', 'st', 'nd', 'rd'][position % 10] ?? 'th')
  return `${position}${ending}`
}
