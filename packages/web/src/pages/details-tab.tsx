import type { TaskSummary, TaskView } from '@corral/protocol'
import type { JSX } from 'preact'
import { revealed } from '../model/hidden-characters.js'
import { fetchLine } from '../model/take-home.js'
import { CopyLine, Loading } from '../parts/basics.js'
import { Fact, Facts } from './task-facts.js'

/** Everything that is recorded of a task. */
export function Details({ task, view }: { task: TaskSummary | TaskView; view: TaskView | undefined }): JSX.Element {
  if (!view) return <Loading rows={4} />
  const command = view.agent.command
  return (
    <div class="details">
      <section>
        <h2>Prompt</h2>
        <pre class="prompt">{revealed(view.task)}</pre>
        {view.instructions && (
          <>
            <h2>Instructions</h2>
            <pre class="prompt">{revealed(view.instructions)}</pre>
          </>
        )}
        {command && (
          <>
            <h2>Command</h2>
            <pre class="prompt">{revealed(command)}</pre>
          </>
        )}
        <h2>Get the work</h2>
        {view.branch ? (
          <>
            <CopyLine
              text={`${fetchLine(view.repo, view.branch)} && git checkout FETCH_HEAD`}
              label="the git command"
            />
            <CopyLine text={`corral task diff ${view.id} | git apply`} label="the command that applies the patch" />
          </>
        ) : (
          <p class="soft">There is no branch yet.</p>
        )}
        {view.warnings && view.warnings.length > 0 && (
          <>
            <h2>Warnings</h2>
            <ul class="warnings">
              {view.warnings.map(({ code, message, path }) => (
                <li key={`${code} ${path} ${message}`}>
                  <b>{code}</b> {revealed(message)}
                </li>
              ))}
            </ul>
          </>
        )}
        <h2>Times</h2>
        <table class="times">
          <tbody>
            {Object.entries((view.times ?? {}) as Record<string, string>).map(([name, time]) => (
              <tr key={name}>
                <th scope="row">{name.replace(/_at$/, '').replaceAll('_', ' ')}</th>
                <td>{new Date(time).toLocaleString()}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <aside class="facts" aria-label="Facts">
        <Facts task={task} view={view} />
        <dl>
          <Fact name="Task">
            <code>{view.id}</code>
          </Fact>
          {view.retry_of && (
            <Fact name="Retry of">
              <a href={`/tasks/${encodeURIComponent(view.retry_of)}`}>{view.retry_of}</a>
              {view.retry_from && <span class="soft"> from {view.retry_from}</span>}
            </Fact>
          )}
          {view.exit_code !== undefined && <Fact name="Exit code">{view.exit_code}</Fact>}
          {view.commit && (
            <Fact name="Commit">
              <code>{view.commit.slice(0, 12)}</code>
            </Fact>
          )}
        </dl>
      </aside>
    </div>
  )
}
