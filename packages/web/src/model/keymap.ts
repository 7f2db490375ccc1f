/** Key bindings: one key, or two in a row (`g t`). Off while typing and in the terminal. */
export interface Binding {
  readonly keys: string
  readonly title: string
  readonly run: () => void
}

/** How long the second key of a pair may take. */
export const pairLimitMs = 1_000

export interface KeyState {
  readonly pending: string
  readonly atMs: number
}

export const noKeys: KeyState = { pending: '', atMs: 0 }

/** What a key does: the binding to run, and what is waited for. */
export function press(
  state: KeyState,
  key: string,
  nowMs: number,
  bindings: readonly Binding[],
): [KeyState, Binding | undefined] {
  const pending = nowMs - state.atMs <= pairLimitMs ? state.pending : ''
  const pair = pending && bindings.find(({ keys }) => keys === `${pending} ${key}`)
  if (pair) return [noKeys, pair]
  const single = bindings.find(({ keys }) => keys === key)
  if (single) return [noKeys, single]
  const isStart = bindings.some(({ keys }) => keys.startsWith(`${key} `))
  return [isStart ? { pending: key, atMs: nowMs } : noKeys, undefined]
}

/** The name of a key press for a binding: `C`, `mod+k`, `?`. Shift is in the character itself. */
export function keyName(event: { key: string; ctrlKey: boolean; metaKey: boolean; altKey: boolean }): string {
  const key = event.key.length === 1 ? event.key : event.key.toLowerCase()
  return `${event.ctrlKey || event.metaKey ? 'mod+' : ''}${event.altKey ? 'alt+' : ''}${key}`
}

/** Whether a key press belongs to a field the user types in. */
export function isTyping(target: { tagName?: string; isContentEditable?: boolean } | null): boolean {
  return ['INPUT', 'TEXTAREA', 'SELECT'].includes(target?.tagName ?? '') || target?.isContentEditable === true
}
