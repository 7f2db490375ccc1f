import { useEffect, useState } from 'preact/hooks'
import { isLive } from './stream.js'

/** What a call answers, asked again every few seconds while the page is visible. The last answer stays over a failure. */
export function usePolled<T>(call: (signal: AbortSignal) => Promise<T>, key: string, everyMs = 3_000) {
  const [value, setValue] = useState<T>()
  const [failure, setFailure] = useState<unknown>()
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    const abort = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const ask = async (): Promise<void> => {
      try {
        if (document.visibilityState === 'visible' || value === undefined) {
          const next = await call(abort.signal)
          if (abort.signal.aborted) return
          setValue(next)
          setFailure(undefined)
        }
      } catch (error) {
        if (abort.signal.aborted) return
        setFailure(error)
      }
      timer = setTimeout(() => void ask(), everyMs)
    }
    void ask()
    return () => {
      abort.abort()
      clearTimeout(timer)
    }
  }, [key, turn, isLive.value])
  return { value, failure, reload: () => setTurn((old) => old + 1) }
}
