import type { TaskSummary } from '@corral/protocol'
import type { JSX } from 'preact'
import { useMemo, useRef, useState } from 'preact/hooks'
import { matches } from '../model/filter.js'
import { grouped, groupTitles, type TaskGroup, taskGroups } from '../model/groups.js'
import type { Route } from '../model/route.js'
import { repositoryName, statusWord } from '../model/status-words.js'
import { Button, Empty, Loading } from '../parts/basics.js'
import { FirstRun } from '../parts/first-run.js'
import { Icon } from '../parts/icons.js'
import { isNewTaskOpen } from '../parts/overlays.js'
import { TaskCard } from '../parts/task-card.js'
import { rowHeight, TaskRow } from '../parts/task-row.js'
import { WindowedRows } from '../parts/windowed-rows.js'
import { useKeys } from '../state/keys.js'
import { go } from '../state/location.js'
import { reviewed } from '../state/preferences.js'
import { areTasksKnown, tasks } from '../state/stream.js'

type TasksRoute = Extract<Route, { page: 'tasks' }>
type Line = { kind: 'group'; group: TaskGroup; count: number } | { kind: 'task'; task: TaskSummary }

/** All tasks, what needs a person first. */
export function TasksPage({ route }: { route: TasksRoute }): JSX.Element {
  const filter = useRef<HTMLInputElement>(null)
  const all = tasks.value
  const groups = useMemo(() => {
    const shown = [...all.values()].filter(
      (task) =>
        isWanted(task, route.query) &&
        hasStatus(task, route.status) &&
        (!route.project || task.project === route.project),
    )
    return grouped(shown, new Set(reviewed.value))
  }, [all, route.query, route.status, route.project, reviewed.value])
  const set = (change: Partial<TasksRoute>): void => go({ ...route, ...change }, { replace: true })

  useKeys([
    { keys: '/', title: 'Filter tasks', run: () => filter.current?.focus() },
    {
      keys: 'b',
      title: route.view === 'board' ? 'Show as list' : 'Show as board',
      run: () => set({ view: route.view === 'board' ? 'list' : 'board' }),
    },
  ])

  const isEmpty = areTasksKnown.value && all.size === 0
  const isNoMatch = areTasksKnown.value && all.size > 0 && [...groups.values()].every((group) => group.length === 0)
  return (
    <div class="page">
      <div class="bar">
        <h1>Tasks</h1>
        <label class="filter">
          <Icon name="search" />
          <span class="hidden">Filter tasks</span>
          <input
            ref={filter}
            type="search"
            placeholder="Filter"
            value={route.query}
            onInput={(event) => set({ query: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === 'Escape') event.currentTarget.blur()
            }}
          />
          <kbd aria-hidden="true">/</kbd>
        </label>
        {route.project && (
          <button type="button" class="chip chip-button" onClick={() => set({ project: '' })}>
            project {route.project} <span aria-hidden="true">×</span>
            <span class="hidden">: show all projects</span>
          </button>
        )}
        {route.status && (
          <button type="button" class="chip chip-button" onClick={() => set({ status: '' })}>
            {route.status.toLowerCase().replaceAll('_', ' ').split(',').join(' or ')} <span aria-hidden="true">×</span>
            <span class="hidden">: show all states</span>
          </button>
        )}
        <span class="grow" />
        <fieldset class="switch">
          <legend class="hidden">View</legend>
          {(['list', 'board'] as const).map((view) => (
            <button key={view} type="button" aria-pressed={route.view === view} onClick={() => set({ view })}>
              {view === 'list' ? 'List' : 'Board'}
            </button>
          ))}
        </fieldset>
        <Button
          kind="primary"
          icon="plus"
          class="only-narrow"
          onClick={() => {
            isNewTaskOpen.value = true
          }}
        >
          New
        </Button>
      </div>
      {!areTasksKnown.value && <Loading rows={8} label="Loading tasks" />}
      {isEmpty && <FirstRun />}
      {isNoMatch && (
        <Empty
          title="No task matches"
          icon="search"
          action={<Button onClick={() => set({ query: '', project: '', status: '' })}>Clear the filter</Button>}
        >
          {route.query
            ? `Nothing has all the words of “${route.query}” in its title, repository, branch, agent or state.`
            : route.status
              ? 'No task is in this state.'
              : `Project ${route.project} has no task yet.`}
        </Empty>
      )}
      {!isEmpty &&
        !isNoMatch &&
        areTasksKnown.value &&
        (route.view === 'board' ? <Board groups={groups} /> : <List groups={groups} />)}
    </div>
  )
}

/** `status` names phases, as `GET /tasks` does: one, or several with commas between. */
function hasStatus(task: TaskSummary, status: string): boolean {
  return status === '' || status.toUpperCase().split(',').includes(task.status)
}

function isWanted(task: TaskSummary, query: string): boolean {
  if (!query) return true
  const branch = task.branch ?? task.new_branch ?? ''
  const text = `${task.title} ${repositoryName(task.repo)} ${branch} ${task.agent.name} ${statusWord(task.status).word} ${task.id} ${task.cause?.code ?? ''}`
  return matches(text, query)
}

function List({ groups }: { groups: ReadonlyMap<TaskGroup, readonly TaskSummary[]> }): JSX.Element {
  const [chosen, setChosen] = useState<string>()
  const lines = useMemo(() => {
    const all: Line[] = []
    for (const group of taskGroups) {
      const found = groups.get(group) ?? []
      if (found.length > 0) all.push({ kind: 'group', group, count: found.length })
      for (const task of found) all.push({ kind: 'task', task })
    }
    return all
  }, [groups])
  const ids = useMemo(() => lines.flatMap((line) => (line.kind === 'task' ? [line.task.id] : [])), [lines])
  const move = (step: number): void => {
    const at = chosen === undefined ? -1 : ids.indexOf(chosen)
    const next = ids[Math.max(0, Math.min(ids.length - 1, at + step))]
    if (next === undefined) return
    setChosen(next)
    // The row may be outside the window of rows that exist: it is there after the scroll.
    const index = lines.findIndex((line) => line.kind === 'task' && line.task.id === next)
    const box = document.querySelector<HTMLElement>('.rows')
    if (box) {
      const top = index * rowHeight
      if (top < box.scrollTop + rowHeight) box.scrollTop = Math.max(0, top - rowHeight)
      else if (top + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + rowHeight - box.clientHeight
    }
    requestAnimationFrame(() => document.getElementById(`row-${next}`)?.focus({ preventScroll: true }))
  }
  useKeys([
    { keys: 'j', title: 'Next task', run: () => move(1) },
    { keys: 'k', title: 'Previous task', run: () => move(-1) },
  ])
  return (
    <WindowedRows
      class="rows"
      label="Tasks"
      rowHeight={rowHeight}
      count={lines.length}
      render={(index) => {
        const line = lines[index]
        if (!line) return null
        if (line.kind === 'group')
          return (
            <h2 class={`group-head group-${line.group}`}>
              {groupTitles[line.group]} <span>{line.count}</span>
            </h2>
          )
        return <TaskRow task={line.task} onFocus={() => setChosen(line.task.id)} />
      }}
      keyOf={(index) => {
        const line = lines[index]
        return line?.kind === 'task' ? line.task.id : (line?.group ?? index)
      }}
    />
  )
}

const cardsShown = 50

function Board({ groups }: { groups: ReadonlyMap<TaskGroup, readonly TaskSummary[]> }): JSX.Element {
  const columns = taskGroups.filter((group) => group !== 'draft' || (groups.get('draft')?.length ?? 0) > 0)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keys must reach that
    <section class="board" aria-label="Board" tabIndex={0}>
      {columns.map((group) => (
        <Column key={group} group={group} found={groups.get(group) ?? []} />
      ))}
    </section>
  )
}

function Column({ group, found }: { group: TaskGroup; found: readonly TaskSummary[] }): JSX.Element {
  const [shown, setShown] = useState(cardsShown)
  return (
    <section
      class={`column group-${group} ${found.length === 0 ? 'is-empty' : ''}`}
      aria-labelledby={`column-${group}`}
    >
      <h2 id={`column-${group}`}>
        {groupTitles[group]} <span>{found.length}</span>
      </h2>
      {found.slice(0, shown).map((task) => (
        <TaskCard key={task.id} task={task} />
      ))}
      {found.length === 0 && <p class="column-none">Nothing here</p>}
      {found.length > shown && (
        <Button onClick={() => setShown(shown + cardsShown)}>
          Show {Math.min(cardsShown, found.length - shown)} more
        </Button>
      )}
    </section>
  )
}
