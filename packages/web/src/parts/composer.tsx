import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../state/api.js'
import { go } from '../state/location.js'
import { isLive } from '../state/stream.js'
import { attempt, say } from '../state/toasts.js'
import { Key } from './basics.js'

/** Goes on from an ended task: a new one on the same branch, with the agent's session where it is kept. */
export function Composer({ id, branch }: { id: string; branch: string | undefined }): JSX.Element {
  const [text, setText] = useState('')
  const [isBusy, setBusy] = useState(false)
  const send = async (): Promise<void> => {
    if (text.trim() === '' || isBusy) return
    setBusy(true)
    const next = await attempt(() => api.send(id, { task: text }))
    setBusy(false)
    if (!next) return
    setText('')
    if ('delivery' in next) return say('Queued: the agent goes on as a new task when this one has ended')
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
        Follow up
      </label>
      <textarea
        id="follow-up"
        rows={1}
        placeholder={branch ? `Follow up: the agent goes on from ${branch}` : 'Follow up: the agent goes on from here'}
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
