import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { ansiSpans, plainText } from '../model/ansi.js'
import type { FeedItem } from '../model/feed.js'
import { revealed } from '../model/hidden-characters.js'
import { stageWord } from '../model/status-words.js'
import { Icon } from './icons.js'
import { Markdown } from './markdown.js'
import { memo } from './memo.js'

const foldLines = 24
const keptLines = 10

/** One thing that happened. An entry that did not change is not drawn again, however long the feed. */
export const FeedEntry = memo(function FeedEntry({ item }: { item: FeedItem }): JSX.Element | null {
  switch (item.kind) {
    case 'stage':
      return (
        <p class={`entry entry-stage is-${item.state}`}>
          <span class="stage-dot" aria-hidden="true">
            {item.state === 'finished' && <Icon name="check" size={8} />}
            {item.state === 'failed' && <Icon name="close" size={8} />}
          </span>
          <b>{stageWord(item.stage)}</b>
          {item.state === 'failed' && <span>failed</span>}
          {item.detail && <span class="soft">{plainText(item.detail)}</span>}
          <Clock time={item.time} />
        </p>
      )
    case 'message':
      if (item.isThinking)
        return (
          <details class="entry entry-thinking">
            <summary>Thinking</summary>
            <Markdown text={item.text} />
          </details>
        )
      return (
        <article class={`entry entry-message from-${item.role}`}>
          <p class="entry-who">
            {item.role === 'assistant' ? 'Agent' : item.role === 'user' ? 'You' : 'Corral'}
            <Clock time={item.time} />
          </p>
          <Markdown text={item.text} />
        </article>
      )
    case 'tool':
      return <Tool item={item} />
    case 'output':
      return <Output item={item} />
    case 'file':
      return (
        <p class="entry entry-file">
          <Icon name="file" size={14} />
          <span class="soft">{item.change === 'written' ? 'wrote' : item.change}</span>{' '}
          <code>{revealed(item.path)}</code>
        </p>
      )
    case 'plan':
      return (
        <details class="entry entry-plan">
          <summary>
            <b>Plan</b> <span class="soft">revision {item.revision}</span>
          </summary>
          <Markdown text={item.text} />
        </details>
      )
    case 'decision':
      return (
        <article class="entry entry-message from-user">
          <p class="entry-who">
            You{' '}
            {{ approve: 'approved the plan', revise: 'asked for changes', reject: 'rejected the plan' }[item.verdict] ??
              item.verdict}
            <Clock time={item.time} />
          </p>
          {item.text && <Markdown text={item.text} />}
        </article>
      )
    case 'warning':
    case 'error':
      return (
        <p class={`entry entry-note is-${item.kind}`}>
          <span class={`state state-${item.kind === 'error' ? 'bad' : 'attention'}`} aria-hidden="true">
            <Icon name={item.kind === 'error' ? 'close' : 'alert'} size={10} />
          </span>
          <span>
            {item.code && <b>{item.code} </b>}
            {plainText(item.text)}
          </span>
        </p>
      )
    default:
      return null
  }
})

function Clock({ time }: { time: string }): JSX.Element {
  const date = new Date(time)
  return (
    <time class="entry-time" dateTime={time} title={date.toLocaleString()}>
      {date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' })}
    </time>
  )
}

function Tool({ item }: { item: Extract<FeedItem, { kind: 'tool' }> }): JSX.Element {
  const isBad = item.result?.isError === true
  return (
    <details class={`entry entry-tool ${isBad ? 'is-bad' : ''}`}>
      <summary>
        {item.result ? (
          <Icon name={isBad ? 'close' : 'check'} size={12} />
        ) : (
          <span class="spinner" aria-hidden="true" />
        )}
        <b>{item.tool}</b>
        <code>{plainText(item.summary)}</code>
      </summary>
      {item.input && <pre class="tool-input">{plainText(item.input)}</pre>}
      {item.result && (
        <pre class="tool-result">
          <Colored text={item.result.text} />
        </pre>
      )}
    </details>
  )
}

function Output({ item }: { item: Extract<FeedItem, { kind: 'output' }> }): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  const isLong = item.lines > foldLines
  const text = isLong && !isOpen ? lastLines(item.text, keptLines) : item.text
  return (
    <div class={`entry entry-output is-${item.stream}`}>
      {isLong && (
        <button type="button" class="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Icon name="chevron" size={12} />
          {isOpen ? 'Fold' : `${(item.lines - keptLines).toLocaleString('en-US')} earlier lines`}
        </button>
      )}
      <pre>
        <Colored text={text} />
      </pre>
    </div>
  )
}

function lastLines(text: string, lines: number): string {
  let at = text.endsWith('\n') ? text.length - 1 : text.length
  for (let left = lines; left > 0 && at > 0; left -= 1) at = text.lastIndexOf('\n', at - 1)
  return text.slice(at + 1)
}

/** Text of a program: its colours are the theme's, every other escape is gone. */
export function Colored({ text }: { text: string }): JSX.Element {
  return (
    <>
      {ansiSpans(text).map((span, index) =>
        span.color === undefined && !span.isBold && !span.isDim ? (
          span.text
        ) : (
          <span
            key={index}
            class={`${span.color === undefined ? '' : `ansi-${span.color}`}${span.isBold ? ' bold' : ''}${span.isDim ? ' dim' : ''}`}
          >
            {span.text}
          </span>
        ),
      )}
    </>
  )
}
