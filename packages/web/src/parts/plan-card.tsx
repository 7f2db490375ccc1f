import type { TaskSummary, TaskView } from '@corral/protocol'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { money } from '../model/time-words.js'
import { api } from '../state/api.js'
import { useKeys } from '../state/keys.js'
import { isLive } from '../state/stream.js'
import { attempt, say } from '../state/toasts.js'
import { Button } from './basics.js'
import { Icon } from './icons.js'
import { Markdown } from './markdown.js'

type Plan = NonNullable<TaskView['plan']>
type Mode = 'read' | 'edit' | 'revise' | 'reject'

/** A plan that waits for a person: what it says, what approving it grants, and every way to answer. */
export function PlanCard(props: {
  task: TaskSummary | TaskView
  view: TaskView | undefined
  plan: Plan
  text: string
}): JSX.Element {
  const { task, view, plan } = props
  const [mode, setMode] = useState<Mode>('read')
  const [text, setText] = useState('')
  const [isBusy, setBusy] = useState(false)

  const decide = async (what: string, call: () => Promise<unknown>): Promise<void> => {
    setBusy(true)
    // Where another browser was quicker, or the agent has planned again, the failure says so and the page shows it.
    const done = await attempt(async () => {
      await call()
      return true
    })
    setBusy(false)
    if (!done) return
    setMode('read')
    say(what)
  }
  const { revision } = plan
  const approve = (changed?: string): Promise<void> =>
    decide('Approved: the agent carries it out', () =>
      api.approve(task.id, { revision, ...(changed === undefined ? {} : { plan: changed }) }),
    )
  const start = (next: Mode, first: string): void => {
    setMode(next)
    setText(first)
  }
  useKeys(
    mode === 'read'
      ? [
          { keys: 'a', title: 'Approve the plan', run: () => void approve() },
          { keys: 'e', title: 'Edit the plan', run: () => start('edit', props.text) },
        ]
      : [],
  )
  const submit = (): void => {
    if (mode === 'edit') void approve(text)
    else if (mode === 'revise')
      void decide('The agent plans again', () => api.revise(task.id, { revision, remark: text }))
    else
      void decide('Rejected: the task ends', () =>
        api.reject(task.id, { revision, ...(text.trim() === '' ? {} : { remark: text }) }),
      )
  }
  const hosts = view?.egress ?? []
  const budget = view?.limits?.max_cost_usd
  return (
    <article class="entry plan-card" aria-label="Plan">
      <p class="plan-head">
        <span class="state state-attention" aria-hidden="true">
          <Icon name="alert" size={12} />
        </span>
        <b>Plan, ready for your decision</b>
        <span class="grow" />
        <span class="soft">{revision > 1 ? `revision ${revision} · ` : ''}nothing was changed so far</span>
      </p>
      <div class="plan-body">
        {mode === 'read' ? (
          <Markdown text={props.text} />
        ) : (
          <form
            id="plan-form"
            onSubmit={(event) => {
              event.preventDefault()
              submit()
            }}
          >
            <label class="field">
              <span>
                {
                  {
                    edit: 'The plan as it shall be carried out',
                    revise: 'What should be different',
                    reject: 'Why (may be left out)',
                  }[mode]
                }
              </span>
              <textarea
                autofocus
                rows={mode === 'edit' ? 14 : 4}
                value={text}
                onInput={(event) => setText(event.currentTarget.value)}
              />
            </label>
          </form>
        )}
        <p class="plan-grants">
          <span class="soft">Approving grants</span>
          <span class="chip">write to the repository</span>
          {hosts.map((host) => (
            <span key={host} class="chip">
              {host}
            </span>
          ))}
          {hosts.length === 0 && <span class="chip">no network but the model</span>}
          {budget !== undefined && <span class="chip">budget {money(budget)}</span>}
        </p>
      </div>
      <div class="plan-foot">
        {mode === 'read' ? (
          <>
            <Button kind="primary" keys="A" disabled={isBusy || !isLive.value} onClick={() => void approve()}>
              Approve and run
            </Button>
            <Button keys="E" disabled={!isLive.value} onClick={() => start('edit', props.text)}>
              Edit plan
            </Button>
            <Button disabled={!isLive.value} onClick={() => start('revise', '')}>
              Ask for changes
            </Button>
            <span class="grow" />
            <Button kind="danger" disabled={!isLive.value} onClick={() => start('reject', '')}>
              Reject
            </Button>
          </>
        ) : (
          <>
            <Button
              kind="primary"
              type="submit"
              form="plan-form"
              disabled={isBusy || !isLive.value || (mode !== 'reject' && text.trim() === '')}
            >
              {{ edit: 'Approve this plan', revise: 'Send to the agent', reject: 'Reject and end' }[mode]}
            </Button>
            <Button onClick={() => setMode('read')}>Back</Button>
          </>
        )}
      </div>
    </article>
  )
}
