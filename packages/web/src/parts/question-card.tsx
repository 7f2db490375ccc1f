import type { TaskQuestion } from '@corral/protocol'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { revealed } from '../model/hidden-characters.js'
import { api } from '../state/api.js'
import { isLive } from '../state/stream.js'
import { attempt, say } from '../state/toasts.js'
import { Button } from './basics.js'
import { Icon } from './icons.js'

/** A question that waits for a person: what is asked, and every way to answer. */
export function QuestionCard(props: { id: string; question: TaskQuestion }): JSX.Element {
  const { id, question } = props
  const [text, setText] = useState('')
  const [isBusy, setBusy] = useState(false)

  const answer = async (given: { option: string } | { answer: string }): Promise<void> => {
    setBusy(true)
    // Where the question was answered elsewhere first, the error says so and the page shows it.
    const done = await attempt(async () => {
      await api.answer(id, { question: question.id, ...given })
      return true
    })
    setBusy(false)
    if (done) say('Answered: the agent goes on')
  }
  const takesWords = question.kind === 'input'
  return (
    <article class="entry plan-card question-card" aria-label="Question">
      <p class="plan-head">
        <span class="state state-attention" aria-hidden="true">
          <Icon name="alert" size={12} />
        </span>
        <b>{takesWords ? 'The agent asks' : 'The agent asks for permission'}</b>
      </p>
      <form
        class="plan-body"
        id={`question-${question.id}`}
        onSubmit={(event) => {
          event.preventDefault()
          void answer({ answer: text })
        }}
      >
        <p>{revealed(question.text)}</p>
        {takesWords && (
          <label class="field">
            <span>In your own words</span>
            <textarea rows={3} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          </label>
        )}
      </form>
      <div class="plan-foot">
        {question.options.map((option, index) => (
          <Button
            key={option.id}
            kind={index === 0 ? 'primary' : 'plain'}
            disabled={isBusy || !isLive.value}
            onClick={() => void answer({ option: option.id })}
          >
            {revealed(option.label)}
          </Button>
        ))}
        {takesWords && (
          <Button
            type="submit"
            form={`question-${question.id}`}
            disabled={isBusy || !isLive.value || text.trim() === ''}
          >
            Answer
          </Button>
        )}
      </div>
    </article>
  )
}
