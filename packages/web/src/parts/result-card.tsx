import type { TaskSummary, TaskView } from '@corral/protocol'
import type { JSX } from 'preact'
import { statusWord } from '../model/status-words.js'
import { fetchLine } from '../model/take-home.js'
import { sentence } from '../state/api.js'
import type { TaskLog } from '../state/stream.js'
import { CopyLine, DiffStat, StatusIcon } from './basics.js'
import { Colored } from './feed-entry.js'

/** How a task ended well, and what to do with it. */
export function ResultCard({ task }: { task: TaskSummary | TaskView }): JSX.Element {
  const hasChanges = task.outcome !== 'no_changes'
  return (
    <article class="entry result-card">
      <p class="result-head">
        <StatusIcon status={task.status} />
        <b>{hasChanges ? 'Ready to review' : 'Done: no changes were needed'}</b>
        <span class="grow" />
        <DiffStat task={task} />
      </p>
      {hasChanges && (
        <div class="result-body">
          {task.branch && <CopyLine text={fetchLine(task.repo, task.branch)} label="the git command" />}
          <a class="button primary" href={`/tasks/${encodeURIComponent(task.id)}/changes`}>
            Review changes
          </a>
        </div>
      )}
    </article>
  )
}

const lastOutput = 20

/** What went wrong, why, and the next move. */
export function FailureCard({ task, log }: { task: TaskSummary | TaskView; log: TaskLog }): JSX.Element {
  const { cause, status } = task
  const output = log.items.findLast((item) => item.kind === 'output')
  const lines = output?.kind === 'output' ? output.text.trimEnd().split('\n').slice(-lastOutput).join('\n') : ''
  const hasWork = task.outcome === 'changes' || task.outcome === 'partial'
  return (
    <article class={`entry failure-card ${status === 'CANCELLED' ? 'is-quiet' : ''}`}>
      <p class="result-head">
        <StatusIcon status={status} />
        <b>{cause ? cause.code : statusWord(status).word}</b>
        <span class="grow" />
        <DiffStat task={task} />
      </p>
      <div class="failure-body">
        {cause && <p>{sentence(cause.message)}</p>}
        {cause?.hint && <p class="soft">{cause.hint}</p>}
        {status !== 'CANCELLED' && lines && (
          <details open>
            <summary>Last output</summary>
            <pre>
              <Colored text={lines} />
            </pre>
          </details>
        )}
        {hasWork && (
          <a class="button plain" href={`/tasks/${encodeURIComponent(task.id)}/changes`}>
            Review what was done
          </a>
        )}
      </div>
    </article>
  )
}
