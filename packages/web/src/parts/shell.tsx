import type { ComponentChildren, JSX } from 'preact'
import { groupOf } from '../model/groups.js'
import { session } from '../state/api.js'
import { route } from '../state/location.js'
import { reviewed } from '../state/preferences.js'
import { areTasksKnown, link, tasks } from '../state/stream.js'
import { dismiss, toasts } from '../state/toasts.js'
import { Key } from './basics.js'
import { Icon, type IconName, Mark } from './icons.js'
import { isNewTaskOpen, isPaletteOpen } from './overlays.js'

const places: readonly { page: string; href: string; title: string; icon: IconName; keys: string }[] = [
  { page: 'tasks', href: '/', title: 'Tasks', icon: 'tasks', keys: 'g t' },
  { page: 'review', href: '/review', title: 'Review', icon: 'comment', keys: 'g r' },
  { page: 'projects', href: '/projects', title: 'Projects', icon: 'folder', keys: 'g p' },
  { page: 'sandboxes', href: '/sandboxes', title: 'Sandboxes', icon: 'box', keys: 'g s' },
  { page: 'usage', href: '/usage', title: 'Usage', icon: 'chart', keys: 'g u' },
  { page: 'settings', href: '/settings', title: 'Settings', icon: 'gear', keys: 'g ,' },
]

/** How many tasks wait for a person: in the navigation and in the title of the tab. */
export function needsYou(): number {
  const seen = new Set(reviewed.value)
  let count = 0
  for (const task of tasks.value.values()) if (groupOf(task, seen) === 'needs-you') count += 1
  return count
}

function reviewCount(): number {
  const seen = new Set(reviewed.value)
  let count = 0
  for (const task of tasks.value.values()) if (groupOf(task, seen) === 'review') count += 1
  return count
}

function activeCount(): number {
  let count = 0
  for (const { status } of tasks.value.values())
    if (status === 'RUNNING' || status === 'PROVISIONING' || status === 'QUEUED') count += 1
  return count
}

/** Navigation, the page, and what lies above both. */
export function Shell({ children }: { children: ComponentChildren }): JSX.Element {
  const { page } = route.value
  const current =
    page === 'task' || page === 'new' || page === 'compare'
      ? 'tasks'
      : page === 'pool'
        ? 'sandboxes'
        : page === 'project'
          ? 'projects'
          : page
  const waiting = needsYou()
  const active = activeCount()
  const toReview = reviewCount()
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header class="side">
        <a class="brand" href="/" aria-label="Corral, all tasks">
          <Mark />
          <span>Corral</span>
        </a>
        <button
          type="button"
          class="button new-task"
          onClick={() => {
            isNewTaskOpen.value = true
          }}
        >
          <Icon name="plus" />
          <span>New task</span>
          <Key keys="C" />
        </button>
        <nav aria-label="Pages">
          <ul>
            {places.map(({ href, title, icon, page: name }) => (
              <li key={name}>
                <a href={href} class="place" aria-current={current === name ? 'page' : undefined}>
                  <Icon name={icon} />
                  <span>{title}</span>
                  {name === 'tasks' && waiting > 0 && <span class="count needs">{waiting}</span>}
                  {name === 'review' && toReview > 0 && <span class="count">{toReview}</span>}
                  {name === 'tasks' && waiting === 0 && active > 0 && <span class="count">{active}</span>}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="side-foot">
          <Live />
          <button
            type="button"
            class="icon-button palette-button"
            title="Search and commands"
            onClick={() => {
              isPaletteOpen.value = true
            }}
          >
            <span class="hidden">Search and commands</span>
            <Key keys="mod+K" />
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <Offline />
        {children}
      </main>
      <Toasts />
    </div>
  )
}

function Live(): JSX.Element {
  const isLive = link.value === 'live'
  return (
    <span class={`live ${isLive ? 'is-live' : ''}`} role="status">
      <span class="live-dot" aria-hidden="true" />
      {isLive ? 'Live' : link.value === 'connecting' ? 'Connecting' : 'Offline'}
      {isLive && session.value && <span class="version">{session.value.version}</span>}
    </span>
  )
}

/** Says why the page stands still, and that what it shows is the last that was known. */
function Offline(): JSX.Element | null {
  if (link.value !== 'waiting' || !areTasksKnown.value) return null
  return (
    <div class="offline" role="status">
      <span class="spinner" aria-hidden="true" />
      Reconnecting. This is the last known state; sandboxes and agents go on without this page.
    </div>
  )
}

function Toasts(): JSX.Element {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ key, text, hint, isError, href }) => (
        <div key={key} class={`toast ${isError ? 'is-error' : ''}`}>
          <div>
            <p>{text}</p>
            {hint && <p class="toast-hint">{hint}</p>}
          </div>
          {href && (
            <a class="button plain" href={href} onClick={() => dismiss(key)}>
              Open
            </a>
          )}
          <button type="button" class="icon-button" aria-label="Dismiss" onClick={() => dismiss(key)}>
            <Icon name="close" size={14} />
          </button>
        </div>
      ))}
    </div>
  )
}
