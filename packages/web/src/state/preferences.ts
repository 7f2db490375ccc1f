import { effect, type Signal, signal } from '@preact/signals'

/** A value this browser remembers. What is stored there may be anything: `check` says whether it is one of ours. */
export function remembered<T>(name: string, first: T, check: (value: unknown) => value is T): Signal<T> {
  const key = `corral.${name}`
  const kept = signal(read(key, first, check))
  effect(() => {
    const text = JSON.stringify(kept.value)
    try {
      localStorage.setItem(key, text)
    } catch {
      // A browser that keeps nothing forgets it with the page.
    }
  })
  return kept
}

function read<T>(key: string, first: T, check: (value: unknown) => value is T): T {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(key) ?? 'null')
    return check(value) ? value : first
  } catch {
    return first
  }
}

export const isStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

const isTheme = (value: unknown): value is 'system' | 'light' | 'dark' =>
  value === 'system' || value === 'light' || value === 'dark'

export const theme = remembered<'system' | 'light' | 'dark'>('theme', 'system', isTheme)
export const areKeysOn = remembered('keys', true, (value): value is boolean => typeof value === 'boolean')
export const isSplit = remembered('split', false, (value): value is boolean => typeof value === 'boolean')

/** Tasks whose changes were marked as reviewed in this browser, the latest last. */
export const reviewed = remembered<string[]>('reviewed', [], isStrings)

export function markReviewed(id: string, isReviewed: boolean): void {
  const others = reviewed.value.filter((other) => other !== id)
  reviewed.value = isReviewed ? [...others, id].slice(-2_000) : others
}

effect(() => {
  document.documentElement.dataset.theme = theme.value
})
