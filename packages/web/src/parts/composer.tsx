import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../state/api.js'
import { go } from '../state/location.js'
import { isLive } from '../state/stream.js'
import { attempt, say } from '../state/toasts.js'
import { Key } from './basics.js'

/**
 * Says something to the agent. One that runs reads it at its next step where it can, else when its task has ended; an ended
 * task goes on as a new one on the same branch, with the agent's session where it is kept.
 */
export function Composer(props: { id: string; branch: string | undefined; isRunning: boolean }): JSX.Element {
  const { id, branch } = props
  const [text, setText] = useState('')
  const [isBusy, setBusy] = useState(false)
  const send = async (): Promise<void> => {
    if (text.trim() === '' || isBusy) return
    setBusy(true)
    const next = await attempt(() => api.send(id, { task: text }))
    setBusy(false)
    if (!next) return
    setText('')
    if ('delivery' in next)
      return say(
        next.delivery === 'steered'
          ? 'Sent: the agent reads it at its next step'
          : 'Queued: the agent goes on as a new task when this one has ended',
      )
    say('Going on as a new task')
    go({ page: 'task', id: next.id, tab: 'activity' })
  }
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <label class="hidden" for="follow-up">
        {props.isRunning ? 'Tell the agent' : 'Follow up'}
      </label>
      <textarea
        id="follow-up"
        rows={1}
        placeholder={
          props.isRunning
            ? 'Tell the agent something while it works'
            : `Follow up: the agent goes on from ${branch ?? 'here'}`
        }
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey)) return
          event.preventDefault()
          void send()
        }}
      />
      <button type="submit" class="button primary" disabled={text.trim() === '' || isBusy || !isLive.value}>
        <span>{isBusy ? 'Sending' : 'Send'}</span>
        <Key keys="mod+enter" />
      </button>
    </form>
  )
}
