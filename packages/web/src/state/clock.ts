import { signal } from '@preact/signals'

/** The time pages count from, once a second. */
export const now = signal(Date.now())

setInterval(() => {
  if (document.visibilityState === 'visible') now.value = Date.now()
}, 1_000)
document.addEventListener('visibilitychange', () => {
  now.value = Date.now()
})
