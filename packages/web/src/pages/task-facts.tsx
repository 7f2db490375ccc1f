import type { TaskSummary, TaskView } from '@corral/protocol'
import type { ComponentChildren, JSX } from 'preact'
import { hasEnded, repositoryName } from '../model/status-words.js'
import { count, duration, files, money } from '../model/time-words.js'
import { CopyLine, DiffStat, RunTime } from '../parts/basics.js'

type Props = { task: TaskSummary | TaskView; view: TaskView | undefined }

/** What a person wants to know beside the work: where, who, how long, how much, behind which walls. */
export function Facts({ task, view }: Props): JSX.Element {
  const branch = task.branch ?? task.new_branch
  const limit = view ? duration(view.timeout_seconds * 1000).replace(/ 0+ [sm]$/, '') : undefined
  return (
    <dl>
      <Fact name="Repository">
        <span title={task.repo}>{repositoryName(task.repo)}</span>
        {task.base_branch && (
          <span class="soft">
            {' '}
            from {task.base_branch}
            {task.base_commit && ` @ ${task.base_commit.slice(0, 7)}`}
          </span>
        )}
      </Fact>
      {branch && (
        <Fact name="Branch">
          <code>{branch}</code>
          {!task.branch && hasEnded(task.status) && <span class="soft"> not pushed</span>}
        </Fact>
      )}
      {task.project && (
        <Fact name="Project">
          <a href={`/projects/${encodeURIComponent(task.project)}`}>{task.project}</a>
        </Fact>
      )}
      {view?.group && (
        <Fact name="Attempt">
          <a href={`/compare/${encodeURIComponent(view.group.name)}`}>
            {view.group.number} of {view.group.size}
          </a>
        </Fact>
      )}
      <Fact name="Agent">
        {task.agent.name}
        {task.agent.model && <span class="soft"> {task.agent.model}</span>}
      </Fact>
      {task.times?.running_at && (
        <Fact name="Time">
          <RunTime task={task} />
          {limit && <span class="soft"> of {limit}</span>}
        </Fact>
      )}
      {task.diff_stat && (
        <Fact name="Changes">
          <DiffStat task={task} /> <span class="soft">in {files(task.diff_stat.files_changed)}</span>
        </Fact>
      )}
      <Fact name="Model use">
        {task.usage ? (
          <>
            {task.usage.cost_usd === undefined ? 'price unknown' : money(task.usage.cost_usd)}
            <span class="soft">
              {' '}
              {count(task.usage.input_tokens)} in, {count(task.usage.output_tokens)} out
            </span>
            {view?.limits?.max_cost_usd !== undefined && (
              <span class="soft"> of {money(view.limits.max_cost_usd)}</span>
            )}
          </>
        ) : (
          <span class="soft">none{hasEnded(task.status) ? '' : ' so far'}</span>
        )}
      </Fact>
      <Fact name="Network">
        {view?.egress && view.egress.length > 0 ? view.egress.join(', ') : <span>model broker only</span>}
        {view?.refused && view.refused.length > 0 && (
          <ul class="refused">
            {view.refused.slice(0, 5).map(({ host, port, count: times }) => (
              <li key={`${host}:${port}`}>
                refused {host}
                {port ? `:${port}` : ''} ×{times}
              </li>
            ))}
          </ul>
        )}
      </Fact>
      {task.sandbox?.name && (
        <Fact name="Sandbox">
          <code>{task.sandbox.name}</code>{' '}
          {task.sandbox.isolation && <span class="chip">{task.sandbox.isolation}</span>}
        </Fact>
      )}
      <Fact name="kubectl">
        <CopyLine text={`kubectl -n corral get agenttask ${task.id}`} label="the kubectl command" />
      </Fact>
    </dl>
  )
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }): JSX.Element {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
