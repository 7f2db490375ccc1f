import { signal } from '@preact/signals'

/** What lies above the page. */
export const isPaletteOpen = signal(false)
export const isNewTaskOpen = signal(false)
export const areKeysShown = signal(false)
