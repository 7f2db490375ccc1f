import { signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { type Binding, isTyping, keyName, noKeys, press } from '../model/keymap.js'
import { areKeysOn } from './preferences.js'

const layers = signal<readonly (readonly Binding[])[]>([])
let state = noKeys

/** Every key that does something now, the newest page's first. */
export const activeBindings = (): readonly Binding[] => [...layers.value].reverse().flat()

/** Keys of a component while it is shown. */
export function useKeys(bindings: readonly Binding[]): void {
  // With the page, not after its paint: the first key a person presses on it works.
  useLayoutEffect(() => {
    layers.value = [...layers.value, bindings]
    return () => {
      layers.value = layers.value.filter((layer) => layer !== bindings)
    }
  })
}

export function onKey(event: KeyboardEvent): void {
  if (event.isComposing || event.defaultPrevented) return
  const name = keyName(event)
  const target = event.target as HTMLElement | null
  const isField = isTyping(target) || target?.closest('.xterm') !== null
  // With a modifier a key is no text: it works everywhere but in the terminal, whose programs want it.
  if (isField && (!name.startsWith('mod+') || target?.closest('.xterm'))) return
  if (!areKeysOn.value && !name.startsWith('mod+')) return
  if (document.querySelector('dialog[open]') && !name.startsWith('mod+')) return
  const [next, binding] = press(state, name, Date.now(), activeBindings())
  state = next
  if (!binding) return
  event.preventDefault()
  binding.run()
}
