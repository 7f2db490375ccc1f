/** What a combined signal hangs on, kept for as long as the combination is. */
const sources = new WeakMap<AbortSignal, readonly AbortSignal[]>()

/**
 * Aborts with the first of the signals. Like `AbortSignal.any`, but for time limits: nothing else holds
 * `AbortSignal.timeout(…)`, so that Node collects it as garbage, and the combination would never abort.
 */
export function anySignal(signals: readonly AbortSignal[]): AbortSignal {
  const any = AbortSignal.any([...signals])
  sources.set(any, signals)
  return any
}
