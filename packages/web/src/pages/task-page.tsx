import type { TaskSummary, TaskView } from '@corral/protocol'
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { revealed } from '../model/hidden-characters.js'
import { type TaskTab, taskTabs } from '../model/route.js'
import { stagesOf } from '../model/stages.js'
import { hasEnded, stageWord } from '../model/status-words.js'
import { duration } from '../model/time-words.js'
import { Button, Empty, Key, Loading, Problem, StatusBadge } from '../parts/basics.js'
import { Icon } from '../parts/icons.js'
import { api, codeOf, wordsOf } from '../state/api.js'
import { now } from '../state/clock.js'
import { useKeys } from '../state/keys.js'
import { go } from '../state/location.js'
import { areTasksKnown, isLive, readLog, tasks } from '../state/stream.js'
import { attempt, say } from '../state/toasts.js'
import { Activity } from './activity-tab.js'
import { Changes } from './changes-tab.js'
import { Details } from './details-tab.js'
import { Facts } from './task-facts.js'
import { TerminalTab } from './terminal-tab.js'

const titles: Readonly<Record<TaskTab, string>> = {
  activity: 'Activity',
  changes: 'Changes',
  terminal: 'Terminal',
  details: 'Details',
}

export function TaskPage({ id, tab }: { id: string; tab: TaskTab }): JSX.Element {
  const summary = tasks.value.get(id)
  const wasListed = useRef(false)
  if (summary) wasListed.current = true
  const isRemoved = wasListed.current && !summary && areTasksKnown.value
  const { view, failure, reload } = useTask(id, summary, isRemoved)
  const { log, stop } = useMemo(() => readLog(id), [id])
  useEffect(() => stop, [stop])

  const choose = (next: TaskTab): void => go({ page: 'task', id, tab: next }, { replace: true })
  const actions = useActions(id, summary?.status ?? view?.status)
  useKeys([
    ...taskTabs.map((name, index) => ({
      keys: String(index + 1),
      title: `Show ${titles[name].toLowerCase()}`,
      run: () => choose(name),
    })),
    ...actions.flatMap(({ keys, title, run }) => (keys ? [{ keys, title, run }] : [])),
    { keys: 'u', title: 'Back to all tasks', run: () => go('/') },
  ])

  if (isRemoved)
    return (
      <div class="page">
        <Empty
          title="This task was removed"
          icon="trash"
          action={
            <a class="button plain" href="/">
              All tasks
            </a>
          }
        >
          Its record is gone. A branch it pushed stays.
        </Empty>
      </div>
    )
  if (!summary && areTasksKnown.value && failure)
    return (
      <div class="page">
        <Empty
          title={codeOf(failure) === 'TaskNotFound' ? 'There is no such task' : 'The task cannot be shown'}
          icon="search"
          action={
            <a class="button plain" href="/">
              All tasks
            </a>
          }
        >
          {wordsOf(failure).message}
        </Empty>
      </div>
    )
  const shown = summary ?? view
  return (
    <div class="page task-page">
      <div class="bar">
        <a class="crumb" href="/">
          Tasks
        </a>
        <span class="crumb-sep" aria-hidden="true">
          /
        </span>
        <h1 class="task-title" title={summary?.title}>
          {summary?.title ?? revealed(view?.task.split('\n', 1)[0] ?? id)}
        </h1>
        <span class="grow" />
        {shown && <StatusBadge status={shown.status} />}
        <span class="actions">
          {actions.map(({ title, keys, icon, kind, run }) => (
            <Button
              key={title}
              icon={icon}
              kind={kind}
              disabled={!isLive.value}
              onClick={run}
              {...(keys ? { keys: keys.toUpperCase() } : {})}
            >
              {title}
            </Button>
          ))}
        </span>
      </div>
      {shown && <Rail task={shown} failedStage={failedStage(log.value.items)} />}
      <nav class="tabs" aria-label="Parts of the task">
        {taskTabs.map((name, index) => (
          <a
            key={name}
            href={`/tasks/${encodeURIComponent(id)}${name === 'activity' ? '' : `/${name}`}`}
            aria-current={tab === name ? 'page' : undefined}
          >
            {titles[name]}
            {name === 'changes' && shown?.diff_stat && <span class="count">{shown.diff_stat.files_changed}</span>}
            <Key keys={String(index + 1)} />
          </a>
        ))}
      </nav>
      <div class={`task-body tab-${tab}`}>
        {!shown && !failure && <Loading label="Loading the task" />}
        {failure && shown && <Problem {...wordsOf(failure)} onRetry={reload} />}
        {shown && tab === 'activity' && (
          <>
            <Activity id={id} log={log.value} task={shown} view={view} />
            <aside class="facts" aria-label="Facts">
              <Facts task={shown} view={view} />
            </aside>
          </>
        )}
        {shown && tab === 'changes' && <Changes id={id} task={shown} />}
        {shown && tab === 'terminal' && <TerminalTab key={id} id={id} task={shown} />}
        {shown && tab === 'details' && <Details task={shown} view={view} />}
      </div>
    </div>
  )
}

/** The whole task; asked for again when its row changes. */
function useTask(id: string, summary: TaskSummary | undefined, isRemoved: boolean) {
  const [view, setView] = useState<TaskView>()
  const [failure, setFailure] = useState<unknown>()
  const [turn, setTurn] = useState(0)
  const mark = summary
    ? `${summary.status} ${summary.commit} ${summary.pushed} ${summary.sandbox?.name} ${summary.outcome} ${summary.plan?.revision} ${JSON.stringify(summary.questions)}`
    : ''
  useEffect(() => {
    if (isRemoved) return
    const abort = new AbortController()
    api.get(id, { signal: abort.signal }).then(
      (next) => {
        setView(next)
        setFailure(undefined)
      },
      (error: unknown) => {
        if (!abort.signal.aborted) setFailure(error)
      },
    )
    return () => abort.abort()
  }, [id, mark, turn])
  return { view: view?.id === id ? view : undefined, failure, reload: () => setTurn(turn + 1) }
}

interface Action {
  title: string
  keys?: string
  icon: 'stop' | 'retry' | 'trash'
  kind: 'plain' | 'danger'
  run: () => void
}

function useActions(id: string, status: string | undefined): Action[] {
  if (status === undefined) return []
  const cancel = async (): Promise<void> => {
    const done = await attempt(() => api.cancel(id))
    if (done) say('The task ends; its work so far is kept')
  }
  const retry = async (): Promise<void> => {
    const next = await attempt(() => api.retry(id))
    if (!next) return
    say('Running again as a new task')
    go({ page: 'task', id: next.id, tab: 'activity' })
  }
  const remove = async (): Promise<void> => {
    if (!window.confirm('Remove this task and its record? Its branch stays.')) return
    if (!(await attempt(() => api.remove(id)))) return
    say('The task is removed; its branch stays')
    go('/')
  }
  if (!hasEnded(status)) return [{ title: 'Cancel', keys: 'x', icon: 'stop', kind: 'plain', run: () => void cancel() }]
  return [
    { title: 'Retry', keys: 'r', icon: 'retry', kind: 'plain', run: () => void retry() },
    { title: 'Remove', icon: 'trash', kind: 'plain', run: () => void remove() },
  ]
}

function failedStage(items: readonly { kind: string; state?: string; stage?: string }[]): string | undefined {
  return items.findLast((item) => item.kind === 'stage' && item.state === 'failed')?.stage
}

/** Where the task is on its way, and what each part of it took. */
function Rail({ task, failedStage }: { task: TaskSummary | TaskView; failedStage: string | undefined }): JSX.Element {
  const stages = stagesOf(task, failedStage)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls on a phone, and keys must reach that
    <ol class="rail" aria-label="Stages" tabIndex={0}>
      {stages.map(({ stage, state, fromMs, toMs }) => (
        <li key={stage} class={`stage is-${state}`} aria-current={state === 'active' ? 'step' : undefined}>
          <span class="stage-dot" aria-hidden="true">
            {state === 'failed' && <Icon name="close" size={8} />}
            {state === 'done' && <Icon name="check" size={8} />}
          </span>
          <span>{stageWord(stage)}</span>
          <span class="hidden">{state}</span>
          {fromMs !== undefined && (state === 'active' || toMs !== undefined) && (
            <span class="stage-time">{duration((toMs ?? now.value) - fromMs)}</span>
          )}
        </li>
      ))}
    </ol>
  )
}
