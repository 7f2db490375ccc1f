import { signal } from '@preact/signals'
import { wordsOf } from './api.js'

export interface Toast {
  readonly key: number
  readonly text: string
  readonly hint?: string | undefined
  readonly isError: boolean
  readonly href?: string | undefined
}

export const toasts = signal<readonly Toast[]>([])
let lastKey = 0

export function say(text: string, options: { hint?: string; isError?: boolean; href?: string } = {}): void {
  const key = ++lastKey
  const { isError = false } = options
  toasts.value = [...toasts.value.slice(-3), { key, text, isError, hint: options.hint, href: options.href }]
  setTimeout(() => dismiss(key), isError ? 15_000 : 6_000)
}

export function dismiss(key: number): void {
  toasts.value = toasts.value.filter((toast) => toast.key !== key)
}

/** Does something a person asked for; a failure is told where they look. */
export async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    const { message, hint } = wordsOf(error)
    say(message, { isError: true, ...(hint ? { hint } : {}) })
    return undefined
  }
}
