import type { ComponentType, JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Loading, Problem } from './basics.js'

/** A page whose code comes when somebody goes there. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined
  return function Lazy(props: P): JSX.Element {
    const [Page, setPage] = useState(() => loaded)
    const [isLost, setLost] = useState(false)
    useEffect(() => {
      if (loaded) return
      load().then(
        (page) => {
          loaded = page
          setPage(() => page)
        },
        () => setLost(true),
      )
    }, [])
    if (Page) return <Page {...props} />
    if (!isLost) return <Loading />
    return <Problem message="This page could not be loaded" onRetry={() => window.location.reload()} />
  }
}
