import type { TaskSummary } from '@corral/protocol'
import type { JSX } from 'preact'
import { repositoryName } from '../model/status-words.js'
import { Age, DiffStat, RunTime, StatusIcon } from './basics.js'
import { subline } from './task-row.js'

/** A task on the board. */
export function TaskCard({ task }: { task: TaskSummary }): JSX.Element {
  return (
    <a class="card" href={`/tasks/${encodeURIComponent(task.id)}`}>
      <span class="card-head">
        <StatusIcon status={task.status} />
        <span class="chip">{repositoryName(task.repo)}</span>
        <span class="grow" />
        <Age since={task.created_at} />
      </span>
      <span class="card-title">{task.title || task.id}</span>
      <span class={`card-sub ${task.cause && task.status !== 'SUCCEEDED' ? 'is-bad' : ''}`}>{subline(task)}</span>
      <span class="card-foot">
        <DiffStat task={task} />
        <span class="grow" />
        <RunTime task={task} />
      </span>
    </a>
  )
}
