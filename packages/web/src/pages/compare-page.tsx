import type { GroupView, TaskView } from '@corral/protocol'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { files, money } from '../model/time-words.js'
import { Button, DiffStat, Empty, Loading, Problem, RunTime, StatusBadge } from '../parts/basics.js'
import { api, codeOf, wordsOf } from '../state/api.js'
import { usePolled } from '../state/polled.js'
import { isLive } from '../state/stream.js'
import { attempt, say } from '../state/toasts.js'

/** Attempts at the same thing side by side, and the choice of one. */
export function ComparePage({ group }: { group: string }): JSX.Element {
  const { value, failure, reload } = usePolled((signal) => api.group(group, { signal }), `group ${group}`)
  const isMissing = codeOf(failure) === 'NotFound' || codeOf(failure) === 'GroupNotFound'
  return (
    <div class="page">
      <div class="bar">
        <h1>
          <a href="/">Tasks</a> <span class="soft">/</span> Attempts
        </h1>
        <span class="grow" />
        {value && <code class="soft only-wide">{value.branch}</code>}
      </div>
      <div class="scroll">
        {isMissing && (
          <Empty title={`There are no attempts ${group}`} icon="branch" action={<a href="/">All tasks</a>} />
        )}
        {!isMissing && failure !== undefined && <Problem {...wordsOf(failure)} onRetry={reload} />}
        {!value && failure === undefined && <Loading label="Loading attempts" />}
        {value && <Attempts group={value} onPicked={reload} />}
      </div>
    </div>
  )
}

function Attempts({ group, onPicked }: { group: GroupView; onPicked: () => void }): JSX.Element {
  const [isBusy, setBusy] = useState(false)
  const pick = async (task: TaskView): Promise<void> => {
    const isOther = group.picked !== undefined && group.picked.task !== task.id
    if (isOther && !window.confirm(`Give ${group.branch} to this attempt instead of the one that has it?`)) return
    setBusy(true)
    const done = await attempt(() => api.pick(task.id, isOther ? { force: true } : {}))
    setBusy(false)
    if (!done) return
    say(`${group.branch} goes to attempt ${task.group?.number ?? ''}`)
    onPicked()
  }
  return (
    <>
      <p class="compare-prompt">{group.tasks[0]?.task}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: where it is narrow it scrolls, and keys must reach that */}
      <section class="table-box" tabIndex={0} aria-label="Attempts, as a table">
        <table class="table attempts">
          <thead>
            <tr>
              <th scope="col">Attempt</th>
              <th scope="col">Agent</th>
              <th scope="col">State</th>
              <th scope="col">Checks</th>
              <th scope="col">Change</th>
              <th scope="col" class="right">
                Cost
              </th>
              <th scope="col" class="right">
                Time
              </th>
              <th scope="col">
                <span class="hidden">Choice</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {group.tasks.map((task) => (
              <tr key={task.id}>
                <th scope="row">
                  <a href={`/tasks/${encodeURIComponent(task.id)}`}>{task.group?.number ?? task.id}</a>
                  {group.picked?.task === task.id && <span class="chip">picked</span>}
                </th>
                <td data-label="Agent">
                  {task.agent.name}
                  {task.agent.model && <span class="soft"> {task.agent.model}</span>}
                </td>
                <td data-label="State">
                  <StatusBadge status={task.status} />
                  {task.cause && <span class="soft state-why">{task.cause.code}</span>}
                </td>
                <td data-label="Checks">{checksOf(task)}</td>
                <td data-label="Change">
                  {task.diff_stat ? (
                    <a href={`/tasks/${encodeURIComponent(task.id)}/changes`}>
                      <DiffStat task={task} /> <span class="soft">in {files(task.diff_stat.files_changed)}</span>
                    </a>
                  ) : (
                    <span class="soft">{task.outcome === 'no_changes' ? 'none' : '–'}</span>
                  )}
                </td>
                <td class="right" data-label="Cost">
                  {task.usage?.cost_usd === undefined ? '–' : money(task.usage.cost_usd)}
                </td>
                <td class="right" data-label="Time">
                  <RunTime task={task} />
                </td>
                <td class="table-actions">
                  <Button
                    disabled={isBusy || !isLive.value || !task.branch || group.picked?.task === task.id}
                    title={task.branch ? `Gives it the branch ${group.branch}` : 'It has pushed nothing'}
                    onClick={() => void pick(task)}
                  >
                    Pick
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {group.picked && (
        <p class="compare-prompt soft">
          The branch {group.branch} was given to an attempt by{' '}
          <a href={`/tasks/${encodeURIComponent(group.picked.by)}`}>{group.picked.by}</a>.
        </p>
      )}
    </>
  )
}

function checksOf({ checks }: TaskView): JSX.Element | string {
  const last = checks?.rounds.at(-1)
  if (!last) return <span class="soft">–</span>
  const passed = last.results.filter(({ outcome }) => outcome === 'passed').length
  return `${passed} of ${last.results.length} passed`
}
