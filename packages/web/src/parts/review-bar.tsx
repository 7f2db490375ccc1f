import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { type DraftComment, reviewMessage } from '../model/comments.js'
import { api } from '../state/api.js'
import { go } from '../state/location.js'
import { clearComments } from '../state/review.js'
import { isLive } from '../state/stream.js'
import { attempt, say } from '../state/toasts.js'
import { Button } from './basics.js'

/** Sends all remarks as one message: a follow-up task on the same branch. */
export function ReviewBar(props: {
  id: string
  draftKey: string
  comments: readonly DraftComment[]
  branch: string | undefined
}): JSX.Element | null {
  const { id, comments } = props
  const [text, setText] = useState('')
  const [isBusy, setBusy] = useState(false)
  if (comments.length === 0) return null
  const send = async (): Promise<void> => {
    setBusy(true)
    const next = await attempt(() => api.send(id, reviewMessage(text, comments)))
    setBusy(false)
    if (!next) return
    clearComments(props.draftKey)
    if ('delivery' in next) return say('Queued: the agent goes on as a new task when this one has ended')
    say('Sent: the agent goes on as a new task')
    go({ page: 'task', id: next.id, tab: 'activity' })
  }
  return (
    <form
      class="review-bar"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <b>{comments.length === 1 ? '1 comment' : `${comments.length} comments`}</b>
      <input
        type="text"
        aria-label="Message with the comments"
        placeholder={`One follow-up on ${props.branch ?? 'its branch'}; add a sentence if you like`}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <Button onClick={() => clearComments(props.draftKey)}>Discard</Button>
      <Button kind="primary" type="submit" icon="send" disabled={isBusy || !isLive.value}>
        {isBusy ? 'Sending' : 'Send to the agent'}
      </Button>
    </form>
  )
}
