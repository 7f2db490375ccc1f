import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { matches } from '../model/filter.js'
import { repositoryName, statusWord } from '../model/status-words.js'
import { activeBindings } from '../state/keys.js'
import { go } from '../state/location.js'
import { tasks } from '../state/stream.js'
import { Key, StatusIcon } from './basics.js'
import { Dialog } from './dialog.js'
import { Icon } from './icons.js'
import { areKeysShown, isPaletteOpen } from './overlays.js'

interface Entry {
  key: string
  title: string
  detail?: string
  keys?: string
  status?: string
  run: () => void
}

const shown = 50

/** Every command that has a key, and every task, by a few letters. */
export function Palette(): JSX.Element | null {
  return isPaletteOpen.value ? <OpenPalette /> : null
}

function OpenPalette(): JSX.Element {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const close = (): void => {
    isPaletteOpen.value = false
  }
  const entries = entriesFor(text)
  const chosen = Math.min(at, entries.length - 1)
  const run = (entry: Entry | undefined): void => {
    if (!entry) return
    close()
    // After the dialog has given the focus back.
    setTimeout(() => entry.run())
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step) setAt((chosen + step + entries.length) % Math.max(1, entries.length))
    else if (event.key === 'Enter') run(entries[chosen])
    else return
    event.preventDefault()
  }
  return (
    <Dialog label="Search and commands" class="palette" onClose={close}>
      <div class="palette-field">
        <Icon name="search" />
        <input
          autofocus
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={entries[chosen] ? `palette-${chosen}` : undefined}
          aria-label="Search tasks and commands"
          placeholder="Search tasks and commands"
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value)
            setAt(0)
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      <div id="palette-list" role="listbox" aria-label="Results" class="palette-list">
        {entries.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above takes the keys of this list
          <div
            key={entry.key}
            id={`palette-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            class="palette-entry"
            onMouseMove={() => setAt(index)}
            onClick={() => run(entry)}
          >
            {entry.status ? <StatusIcon status={entry.status} /> : <Icon name="chevron" size={14} />}
            <span class="palette-title">{entry.title}</span>
            {entry.detail && <span class="palette-detail">{entry.detail}</span>}
            {entry.keys && <Key keys={entry.keys} />}
          </div>
        ))}
        {entries.length === 0 && <p class="palette-none">Nothing matches “{text}”</p>}
      </div>
    </Dialog>
  )
}

function entriesFor(text: string): Entry[] {
  const commands: Entry[] = activeBindings()
    .filter(({ title }) => matches(title, text))
    .map(({ keys, title, run }) => ({ key: `command ${keys} ${title}`, title, keys, run }))
  const found: Entry[] = []
  for (const task of tasks.value.values()) {
    if (!matches(`${task.title} ${task.repo} ${task.id} ${statusWord(task.status).word}`, text)) continue
    const detail = `${repositoryName(task.repo)} · ${statusWord(task.status).word}`
    found.push({
      key: task.id,
      title: task.title,
      detail,
      status: task.status,
      run: () => go({ page: 'task', id: task.id, tab: 'activity' }),
    })
  }
  found.sort((one, other) =>
    (tasks.value.get(other.key)?.created_at ?? '').localeCompare(tasks.value.get(one.key)?.created_at ?? ''),
  )
  return [...commands, ...found].slice(0, shown)
}

/** All keys that work on this page. */
export function KeyHelp(): JSX.Element | null {
  if (!areKeysShown.value) return null
  const close = (): void => {
    areKeysShown.value = false
  }
  return (
    <Dialog label="Keys" class="key-help" onClose={close}>
      <h2>Keys</h2>
      <dl>
        {activeBindings().map(({ keys, title }) => (
          <div key={keys + title}>
            <dt>{title}</dt>
            <dd>
              {keys.split(' ').map((key) => (
                <Key key={key} keys={key} />
              ))}
            </dd>
          </div>
        ))}
      </dl>
      <button type="button" class="button plain" onClick={close}>
        Close
      </button>
    </Dialog>
  )
}
