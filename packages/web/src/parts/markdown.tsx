import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { revealed } from '../model/hidden-characters.js'
import type { MarkdownText } from './markdown-text.js'

let loaded: typeof MarkdownText | undefined

/** Text of an agent. The parser comes when the first one is shown; until then, and without it, the text is plain. */
export function Markdown({ text }: { text: string }): JSX.Element {
  const [Component, setComponent] = useState(() => loaded)
  useEffect(() => {
    // It may have come since this was drawn, for another text.
    if (loaded) return setComponent(() => loaded)
    import('./markdown-text.js').then(
      (module) => {
        loaded = module.MarkdownText
        setComponent(() => loaded)
      },
      () => undefined, // the plain text stays
    )
  }, [])
  const shown = revealed(text)
  return Component ? <Component text={shown} /> : <p class="plain-text">{shown}</p>
}
