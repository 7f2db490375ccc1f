/**
 * The life of the one WebSocket of a tab as a state machine: `step(state, input) → [next, actions]`. Time comes in with
 * the input, so that every path is a table in the tests. The shell opens, closes and sets one timer.
 */
export interface ConnectionState {
  readonly phase: 'connecting' | 'live' | 'waiting' | 'signed-out'
  readonly failures: number
  /** When the shell wakes the machine next. */
  readonly wakeAtMs: number
}

export type ConnectionInput =
  | {
      readonly kind: 'opened' | 'beat' | 'closed' | 'failed' | 'online' | 'visible' | 'timer'
      readonly nowMs: number
      readonly random: number
    }
  | { readonly kind: 'unauthorized'; readonly nowMs: number; readonly random: number }

export type ConnectionAction = 'open' | 'close' | 'resubscribe'

export const handshakeLimitMs = 10_000
/** The server sends a beat every 15 s: two missing ones are a dead connection. */
export const silenceLimitMs = 40_000
const firstDelayMs = 500
const longestDelayMs = 30_000

export const firstState = (nowMs: number): ConnectionState => ({
  phase: 'connecting',
  failures: 0,
  wakeAtMs: nowMs + handshakeLimitMs,
})

export function step(state: ConnectionState, input: ConnectionInput): [ConnectionState, readonly ConnectionAction[]] {
  const { nowMs } = input
  switch (input.kind) {
    case 'opened':
      return [{ phase: 'live', failures: 0, wakeAtMs: nowMs + silenceLimitMs }, ['resubscribe']]
    case 'beat':
      return state.phase === 'live' ? [{ ...state, wakeAtMs: nowMs + silenceLimitMs }, []] : [state, []]
    case 'unauthorized':
      return [{ phase: 'signed-out', failures: state.failures, wakeAtMs: Number.POSITIVE_INFINITY }, ['close']]
    case 'closed':
    case 'failed':
      return state.phase === 'signed-out' || state.phase === 'waiting' ? [state, []] : later(state, input)
    case 'online':
    case 'visible':
      return state.phase === 'waiting' ? now(state, nowMs) : [state, []]
    case 'timer':
      if (nowMs < state.wakeAtMs) return [state, []]
      if (state.phase === 'waiting') return now(state, nowMs)
      if (state.phase === 'signed-out') return [state, []]
      return prepend('close', later(state, input))
  }
}

function now(state: ConnectionState, nowMs: number): [ConnectionState, readonly ConnectionAction[]] {
  return [{ phase: 'connecting', failures: state.failures, wakeAtMs: nowMs + handshakeLimitMs }, ['open']]
}

/** Half to all of a delay that doubles: tabs that lost one server do not come back in one moment. */
function later(state: ConnectionState, input: ConnectionInput): [ConnectionState, readonly ConnectionAction[]] {
  const longest = Math.min(longestDelayMs, firstDelayMs * 2 ** state.failures)
  const delay = longest / 2 + (input.random * longest) / 2
  return [{ phase: 'waiting', failures: state.failures + 1, wakeAtMs: input.nowMs + delay }, []]
}

function prepend(
  action: ConnectionAction,
  [state, actions]: [ConnectionState, readonly ConnectionAction[]],
): [ConnectionState, readonly ConnectionAction[]] {
  return [state, [action, ...actions]]
}
