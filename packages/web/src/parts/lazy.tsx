import type { ComponentType, JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Loading, Problem } from './basics.js'

/** A component whose code comes later. `preload` fetches it before it is shown; a failure shows when it is. */
export type Lazy<P extends object> = ComponentType<P> & { readonly preload: () => void }

/** A page whose code is fetched when it is opened, or with `preload` a moment before. */
export function lazy<P extends object>(
  load: () => Promise<ComponentType<P>>,
  whileLoading: () => JSX.Element | null = () => <Loading />,
): Lazy<P> {
  let loaded: ComponentType<P> | undefined
  let loading: Promise<ComponentType<P>> | undefined
  const begin = (): Promise<ComponentType<P>> => {
    loading ??= load().then(
      (page) => {
        loaded = page
        return page
      },
      (error: unknown) => {
        loading = undefined
        throw error
      },
    )
    return loading
  }
  function LazyPage(props: P): JSX.Element | null {
    const [Page, setPage] = useState(() => loaded)
    const [isLost, setLost] = useState(false)
    useEffect(() => {
      // Also where it came between the first drawing and now.
      if (!Page)
        begin().then(
          (page) => setPage(() => page),
          () => setLost(true),
        )
    }, [])
    if (Page) return <Page {...props} />
    if (!isLost) return whileLoading()
    return <Problem message="This page could not be loaded" onRetry={() => window.location.reload()} />
  }
  return Object.assign(LazyPage, { preload: () => void begin().catch(() => undefined) })
}
