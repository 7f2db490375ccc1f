import type { TaskSummary } from '@corral/protocol'
import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import { statusWord } from '../model/status-words.js'
import { age, duration, files } from '../model/time-words.js'
import { now } from '../state/clock.js'
import { say } from '../state/toasts.js'
import { Icon, type IconName } from './icons.js'

/** A state as a shape, so that no colour is needed to tell it. */
export function StatusIcon({ status }: { status: string }): JSX.Element {
  const { tone, word } = statusWord(status)
  return (
    <span class={`state state-${tone}`} role="img" aria-label={word} title={word}>
      {tone === 'good' && <Icon name="check" size={10} />}
      {tone === 'bad' && <Icon name="close" size={10} />}
      {tone === 'attention' && <Icon name="alert" size={12} />}
    </span>
  )
}

export function StatusBadge({ status }: { status: string }): JSX.Element {
  const { word, tone } = statusWord(status)
  return (
    <span class={`badge tone-${tone}`}>
      <StatusIcon status={status} />
      {word}
    </span>
  )
}

export function DiffStat({ task }: { task: Pick<TaskSummary, 'diff_stat'> }): JSX.Element | null {
  const { diff_stat: stat } = task
  if (!stat) return null
  return (
    <span class="diff-stat" title={files(stat.files_changed)}>
      <b class="added">+{stat.insertions}</b> <b class="removed">−{stat.deletions}</b>
    </span>
  )
}

/** How long ago, growing while it is looked at. */
export function Age({ since }: { since: string }): JSX.Element {
  return (
    <time dateTime={since} title={new Date(since).toLocaleString()}>
      {age(now.value - Date.parse(since))}
    </time>
  )
}

/** How long it ran, or runs. */
export function RunTime({ task }: { task: Pick<TaskSummary, 'times'> }): JSX.Element | null {
  const { running_at: from, finished_at: to } = task.times ?? {}
  if (!from) return null
  return <span class="run-time">{duration((to ? Date.parse(to) : now.value) - Date.parse(from))}</span>
}

export function Key({ keys }: { keys: string }): JSX.Element {
  return (
    <kbd aria-hidden="true">
      {keys.replace('mod+', /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl ').replace('enter', '↵')}
    </kbd>
  )
}

export function Button(
  props: {
    icon?: IconName
    keys?: string
    kind?: 'primary' | 'danger' | 'plain'
    children?: ComponentChildren
  } & Omit<JSX.ButtonHTMLAttributes<HTMLButtonElement>, 'icon'>,
): JSX.Element {
  const { icon, keys, kind = 'plain', children, class: extra = '', ...rest } = props
  return (
    <button type="button" {...rest} class={`button ${kind} ${extra}`}>
      {icon && <Icon name={icon} />}
      {children && <span>{children}</span>}
      {keys && <Key keys={keys} />}
    </button>
  )
}

export function CopyLine({ text, label }: { text: string; label: string }): JSX.Element {
  const [isCopied, setCopied] = useState(false)
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => {
        setCopied(true)
        setTimeout(() => setCopied(false), 1_500)
      },
      () => say('The browser did not allow copying', { isError: true }),
    )
  }
  return (
    <div class="copy-line">
      <code>{text}</code>
      <button type="button" class="icon-button" onClick={copy} aria-label={`Copy ${label}`} title="Copy">
        <Icon name={isCopied ? 'check' : 'copy'} size={14} />
      </button>
    </div>
  )
}

export function Empty(props: {
  title: string
  children?: ComponentChildren
  icon?: IconName
  action?: ComponentChildren
}): JSX.Element {
  return (
    <div class="empty">
      {props.icon && (
        <span class="empty-icon">
          <Icon name={props.icon} size={22} />
        </span>
      )}
      <h2>{props.title}</h2>
      {props.children && <p>{props.children}</p>}
      {props.action}
    </div>
  )
}

/** Grey rows for what is on its way; CSS shows them only after a moment. */
export function Loading({ rows = 6, label = 'Loading' }: { rows?: number; label?: string }): JSX.Element {
  return (
    <div class="loading" role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} class="loading-row" />
      ))}
    </div>
  )
}

export function Problem(props: { message: string; hint?: string | undefined; onRetry?: () => void }): JSX.Element {
  return (
    <div class="problem" role="alert">
      <span class="state state-bad" aria-hidden="true">
        <Icon name="close" size={10} />
      </span>
      <div>
        <p class="problem-message">{props.message}</p>
        {props.hint && <p class="problem-hint">{props.hint}</p>}
      </div>
      {props.onRetry && (
        <Button icon="retry" onClick={props.onRetry}>
          Try again
        </Button>
      )}
    </div>
  )
}
