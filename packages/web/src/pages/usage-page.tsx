import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { repositoryName } from '../model/status-words.js'
import { count, duration, money } from '../model/time-words.js'
import { days, successOf, usageBy } from '../model/usage.js'
import { Empty, Loading } from '../parts/basics.js'
import { now } from '../state/clock.js'
import { areTasksKnown, tasks } from '../state/stream.js'

const groupings = {
  agent: 'Agent',
  model: 'Model',
  repository: 'Repository',
} as const

/** What tasks cost, by day and by what they were. Counted from the tasks that are still recorded. */
export function UsagePage(): JSX.Element {
  const [by, setBy] = useState<keyof typeof groupings>('agent')
  const all = [...tasks.value.values()]
  const rows = usageBy(all, (task) =>
    by === 'agent'
      ? task.agent.name
      : by === 'model'
        ? (task.usage?.model ?? task.agent.model ?? 'no model')
        : repositoryName(task.repo),
  )
  const total = usageBy(all, () => 'all')[0]
  const recent = days(all, 14, Math.floor(now.value / 60_000) * 60_000)
  const isMoney = recent.some(({ row }) => row.costUsd > 0)
  const most = Math.max(1e-9, ...recent.map(({ row }) => (isMoney ? row.costUsd : row.tasks)))
  return (
    <div class="page">
      <div class="bar">
        <h1>Usage</h1>
      </div>
      <div class="scroll">
        {!areTasksKnown.value && <Loading label="Loading usage" />}
        {areTasksKnown.value && !total && (
          <Empty title="Nothing was used yet" icon="chart">
            Costs and times appear here with the first task.
          </Empty>
        )}
        {total && (
          <>
            <dl class="totals">
              <Total
                name="Cost"
                value={money(total.costUsd)}
                note={total.unpriced > 0 ? `${total.unpriced} tasks without a known price` : undefined}
              />
              <Total
                name="Tasks"
                value={count(total.tasks)}
                note={total.ended > 0 ? `${successOf(total)} of ${total.ended} ended succeeded` : 'none has ended yet'}
              />
              <Total
                name="Tokens"
                value={count(total.inputTokens + total.outputTokens)}
                note={`${count(total.outputTokens)} written`}
              />
              <Total name="Agent time" value={duration(total.agentMs)} />
            </dl>
            <h2 class="section-head">{isMoney ? 'Cost' : 'Tasks'}, last 14 days</h2>
            <ol class="bars">
              {recent.map(({ day, row }) => (
                <li key={day}>
                  <span
                    class="bar-value"
                    style={{ height: `${Math.round((100 * (isMoney ? row.costUsd : row.tasks)) / most)}%` }}
                    aria-hidden="true"
                  />
                  <span class="bar-day">
                    <span class="hidden">
                      {day}: {isMoney ? money(row.costUsd) : `${row.tasks} tasks`}
                    </span>
                    <span aria-hidden="true">{day.slice(8)}</span>
                  </span>
                </li>
              ))}
            </ol>
            <div class="section-bar">
              <h2 class="section-head">By {groupings[by].toLowerCase()}</h2>
              <fieldset class="switch">
                <legend class="hidden">Group by</legend>
                {(Object.keys(groupings) as (keyof typeof groupings)[]).map((name) => (
                  <button key={name} type="button" aria-pressed={by === name} onClick={() => setBy(name)}>
                    {groupings[name]}
                  </button>
                ))}
              </fieldset>
            </div>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: on a phone it scrolls, and keys must reach that */}
            <section class="table-box" tabIndex={0} aria-label="Usage, as a table">
              <table class="table">
                <thead>
                  <tr>
                    <th scope="col">{groupings[by]}</th>
                    <th scope="col" class="right">
                      Tasks
                    </th>
                    <th scope="col" class="right">
                      Succeeded
                    </th>
                    <th scope="col" class="right">
                      Tokens in
                    </th>
                    <th scope="col" class="right">
                      Tokens out
                    </th>
                    <th scope="col" class="right">
                      Agent time
                    </th>
                    <th scope="col" class="right">
                      Cost
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {rows.slice(0, 100).map((row) => (
                    <tr key={row.name}>
                      <th scope="row">{row.name}</th>
                      <td class="right">{count(row.tasks)}</td>
                      <td class="right">{successOf(row)}</td>
                      <td class="right">{count(row.inputTokens)}</td>
                      <td class="right">{count(row.outputTokens)}</td>
                      <td class="right">{duration(row.agentMs)}</td>
                      <td class="right">{money(row.costUsd)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
          </>
        )}
      </div>
    </div>
  )
}

function Total({ name, value, note }: { name: string; value: string; note?: string | undefined }): JSX.Element {
  return (
    <div class="total">
      <dt>{name}</dt>
      <dd>
        <b>{value}</b>
        {note && <span class="soft">{note}</span>}
      </dd>
    </div>
  )
}
