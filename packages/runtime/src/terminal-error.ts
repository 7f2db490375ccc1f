/** A failure that trying again cannot cure: the controller loop logs it and rests until the next event. */
export class TerminalError extends Error {
  override readonly name: string = 'TerminalError'
  readonly code = 'Terminal'
}

/** Whether the error, or the one it wraps, asks for no further try. Judged by code, so a second copy of this package counts too. */
export function isTerminal(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && at.code === 'Terminal') return true
  }
  return false
}
