import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Button } from './basics.js'

/** A remark under its line: shown, or being typed. */
export function LineComment(props: {
  text: string
  place: string
  isOpen: boolean
  onSave: (text: string) => void
  onClose: () => void
}): JSX.Element {
  const [isEditing, setEditing] = useState(props.isOpen)
  const [text, setText] = useState(props.text)
  if (!isEditing && !props.isOpen)
    return (
      <div class="comment">
        <p class="comment-head">
          <b>You</b> <span class="soft">{props.place} · draft</span>
          <span class="grow" />
          <Button onClick={() => setEditing(true)}>Edit</Button>
          <Button onClick={() => props.onSave('')}>Remove</Button>
        </p>
        <p class="comment-text">{props.text}</p>
      </div>
    )
  const done = (value: string): void => {
    setEditing(false)
    props.onSave(value)
    props.onClose()
  }
  return (
    <form
      class="comment"
      onSubmit={(event) => {
        event.preventDefault()
        done(text)
      }}
    >
      <textarea
        rows={3}
        autofocus
        aria-label={`Comment on ${props.place}`}
        placeholder="What should the agent change here?"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') done(props.text)
          else if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) done(text)
          else return
          event.preventDefault()
        }}
      />
      <p class="comment-head">
        <span class="grow" />
        <Button onClick={() => done(props.text)}>Cancel</Button>
        <Button kind="primary" type="submit" disabled={text.trim() === ''}>
          Keep comment
        </Button>
      </p>
    </form>
  )
}
