import type { TaskSummary } from '@corral/protocol'
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { groupOf, newestFirst } from '../model/groups.js'
import { repositoryName } from '../model/status-words.js'
import { Age, DiffStat, Empty, Key, Loading, StatusIcon } from '../parts/basics.js'
import { useKeys } from '../state/keys.js'
import { go } from '../state/location.js'
import { reviewed } from '../state/preferences.js'
import { commentsOf } from '../state/review.js'
import { areTasksKnown, tasks } from '../state/stream.js'
import { Changes } from './changes-tab.js'

/** The changes that wait for a look, one after the other. */
export function ReviewPage({ task: wanted }: { task: string }): JSX.Element {
  const all = tasks.value
  const waiting = useMemo(() => {
    const seen = new Set(reviewed.value)
    // The one that is looked at stays while it is looked at, also when it was marked just now.
    return [...all.values()]
      .filter((task) => groupOf(task, seen) === 'review' || (task.id === wanted && task.outcome === 'changes'))
      .sort(newestFirst)
  }, [all, reviewed.value, wanted])
  const at = Math.max(
    0,
    waiting.findIndex(({ id }) => id === wanted),
  )
  const current = waiting[at]
  const show = (index: number): void => {
    const next = waiting[Math.max(0, Math.min(waiting.length - 1, index))]
    if (next) go({ page: 'review', task: next.id }, { replace: true })
  }
  useKeys([
    { keys: 'j', title: 'Next change', run: () => show(at + 1) },
    { keys: 'k', title: 'Previous change', run: () => show(at - 1) },
    {
      keys: 'o',
      title: 'Open the task',
      run: () => current && go({ page: 'task', id: current.id, tab: 'activity' }),
    },
  ])
  return (
    <div class="page review-page">
      <div class="bar">
        <h1>Review</h1>
        {waiting.length > 0 && <span class="soft">{waitingWords(waiting.length)}</span>}
        <span class="grow" />
        {current && (
          <a class="button plain" href={`/tasks/${encodeURIComponent(current.id)}`}>
            <span>Open the task</span>
          </a>
        )}
      </div>
      {!areTasksKnown.value && <Loading label="Loading tasks" />}
      {areTasksKnown.value && !current && (
        <Empty
          title="Nothing waits for review"
          icon="check"
          action={
            <a class="button plain" href="/">
              All tasks
            </a>
          }
        >
          A change appears here when its agent has ended and its work was accepted.
        </Empty>
      )}
      {current && (
        <div class="review-columns">
          <nav class="review-queue" aria-label="Changes to review">
            <ul>
              {waiting.map((task, index) => (
                <QueueRow key={task.id} task={task} isCurrent={index === at} />
              ))}
            </ul>
            <p class="soft review-keys">
              <Key keys="j" /> <Key keys="k" /> next and previous change
            </p>
          </nav>
          <section class="review-change" aria-label={current.title}>
            <Changes key={current.id} id={current.id} task={current} />
          </section>
        </div>
      )}
    </div>
  )
}

const waitingWords = (count: number): string => (count === 1 ? '1 change waits' : `${count} changes wait`)

function QueueRow({ task, isCurrent }: { task: TaskSummary; isCurrent: boolean }): JSX.Element {
  const drafts = commentsOf(`${task.id} ${task.commit ?? ''}`).length
  return (
    <li>
      <a
        class="queue-row"
        href={`/review?task=${encodeURIComponent(task.id)}`}
        aria-current={isCurrent ? 'true' : undefined}
      >
        <span class="queue-title">
          <StatusIcon status={task.status} />
          {task.title || task.id}
        </span>
        <span class="queue-facts">
          <span class="chip">{repositoryName(task.repo)}</span>
          <DiffStat task={task} />
          {drafts > 0 && <span class="soft">{drafts === 1 ? '1 draft' : `${drafts} drafts`}</span>}
          <span class="grow" />
          <Age since={task.created_at} />
        </span>
      </a>
    </li>
  )
}
