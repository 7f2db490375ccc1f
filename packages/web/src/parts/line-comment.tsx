import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { placeWords } from '../model/comments.js'
import { Button } from './basics.js'

/** A remark under its last line: shown, or being typed. */
export function LineComment(props: {
  text: string
  path: string
  /** Absent: about the file as a whole. */
  line: number | undefined
  startLine: number | undefined
  /** Where a range that ends at `line` can begin at the earliest. */
  firstLine: number | undefined
  isOpen: boolean
  onSave: (text: string, startLine: number | undefined) => void
  onClose: () => void
}): JSX.Element {
  const { line } = props
  const [isEditing, setEditing] = useState(props.isOpen)
  const [text, setText] = useState(props.text)
  const [startLine, setStartLine] = useState(props.startLine)
  const place = line === undefined ? props.path : placeWords({ line, ...(startLine ? { startLine } : {}) })
  if (!isEditing && !props.isOpen)
    return (
      <div class="comment">
        <p class="comment-head">
          <b>You</b> <span class="soft">{place} · draft</span>
          <span class="grow" />
          <Button onClick={() => setEditing(true)}>Edit</Button>
          <Button onClick={() => props.onSave('', undefined)}>Remove</Button>
        </p>
        <p class="comment-text">{props.text}</p>
      </div>
    )
  const done = (value: string, start: number | undefined): void => {
    setEditing(false)
    props.onSave(value, start)
    props.onClose()
  }
  const keep = (): void => done(text, startLine)
  const leave = (): void => done(props.text, props.startLine)
  return (
    <form
      class="comment"
      onSubmit={(event) => {
        event.preventDefault()
        keep()
      }}
    >
      <textarea
        rows={3}
        autofocus
        aria-label={`Comment on ${place}`}
        placeholder="What should the agent change here?"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') leave()
          else if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) keep()
          else return
          event.preventDefault()
        }}
      />
      <p class="comment-head">
        {line !== undefined && props.firstLine !== undefined && (
          <label class="comment-range">
            From line
            <input
              type="number"
              min={props.firstLine}
              max={line}
              value={startLine ?? line}
              onInput={(event) => {
                const value = event.currentTarget.valueAsNumber
                const isRange = value >= (props.firstLine ?? 1) && value < line
                setStartLine(isRange ? value : undefined)
              }}
            />
            to {line}
          </label>
        )}
        <span class="grow" />
        <Button onClick={leave}>Cancel</Button>
        <Button kind="primary" type="submit" disabled={text.trim() === ''}>
          Keep comment
        </Button>
      </p>
    </form>
  )
}
