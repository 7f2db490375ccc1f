import type { TaskSummary, TaskView } from '@corral/protocol'
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { hasEnded } from '../model/status-words.js'
import { Button, Empty } from '../parts/basics.js'
import type { TerminalState, TerminalView } from '../parts/terminal-view.js'

const rowKeys: readonly [label: string, bytes: string][] = [
  ['Esc', '\u001b'],
  ['Tab', '\t'],
  ['Ctrl-C', '\u0003'],
  ['Ctrl-D', '\u0004'],
  ['↑', '\u001b[A'],
  ['↓', '\u001b[B'],
  ['←', '\u001b[D'],
  ['→', '\u001b[C'],
]

/** A shell where the agent works. It goes on when the page is closed; opening it again continues it. */
export function TerminalTab({ id, task }: { id: string; task: TaskSummary | TaskView }): JSX.Element {
  const place = useRef<HTMLDivElement>(null)
  const view = useRef<TerminalView>()
  const [state, setState] = useState<TerminalState>({ kind: 'opening' })
  const [turn, setTurn] = useState(0)
  const hasSandbox = task.sandbox?.name !== undefined && !hasEnded(task.status)

  useEffect(() => {
    const element = place.current
    if (!element || !hasSandbox) return undefined
    let isGone = false
    setState({ kind: 'opening' })
    import('../parts/terminal-view.js').then(
      ({ openTerminal }) => {
        if (!isGone) view.current = openTerminal(element, { task: id, isNew: turn > 0, onState: setState })
      },
      () => setState({ kind: 'failed', message: 'The terminal could not be loaded' }),
    )
    return () => {
      isGone = true
      view.current?.close()
      view.current = undefined
    }
  }, [id, hasSandbox, turn])

  if (!hasSandbox)
    return (
      <Empty title={hasEnded(task.status) ? 'The sandbox is gone' : 'There is no sandbox yet'} icon="terminal">
        {hasEnded(task.status)
          ? 'A task gives its sandbox back when it ends. Create one with “Keep the sandbox” to look inside after a failure.'
          : 'The terminal opens as soon as the task has one.'}
      </Empty>
    )
  return (
    <div class="terminal">
      <p class="terminal-state" role="status">
        {state.kind === 'opening' && 'Opening a shell in the sandbox'}
        {state.kind === 'open' && (
          <>
            Shell in <code>{task.sandbox?.name}</code>: it goes on when you leave, and is here when you come back.
          </>
        )}
        {state.kind === 'lost' && 'The connection is lost; the shell goes on. Connecting again.'}
        {state.kind === 'exited' && `The shell ended with ${state.code}.`}
        {state.kind === 'failed' && `${state.message}${state.hint ? ` ${state.hint}` : ''}`}
        {(state.kind === 'exited' || state.kind === 'failed') && (
          <Button onClick={() => setTurn(turn + 1)}>New shell</Button>
        )}
      </p>
      <div class="terminal-place" ref={place} />
      <div class="terminal-keys">
        {rowKeys.map(([label, bytes]) => (
          <button key={label} type="button" onClick={() => view.current?.type(bytes)}>
            {label}
          </button>
        ))}
      </div>
    </div>
  )
}
