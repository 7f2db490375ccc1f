import { computed, signal } from '@preact/signals'
import { pathOf, type Route, routeOf } from '../model/route.js'

const address = signal(window.location.href)

/** The page that is shown. */
export const route = computed<Route>(() => routeOf(new URL(address.value)))

window.addEventListener('popstate', () => {
  address.value = window.location.href
})

export function go(to: Route | string, options: { replace?: boolean } = {}): void {
  const path = typeof to === 'string' ? to : pathOf(to)
  if (options.replace) history.replaceState(null, '', path)
  else history.pushState(null, '', path)
  address.value = window.location.href
}

/** Lets links of our own pages change the page without loading it; other clicks stay the browser's. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return
  const link = (event.target as Element | null)?.closest?.('a')
  if (!link || link.target || link.hasAttribute('download') || link.origin !== window.location.origin) return
  if (link.hash && link.pathname === window.location.pathname) return
  event.preventDefault()
  go(link.pathname + link.search)
  document.querySelector('main')?.focus({ preventScroll: true })
}
