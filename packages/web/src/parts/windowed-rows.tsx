import type { ComponentChildren, JSX } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

/** Rows of one height, of which only those in sight exist: five thousand scroll like fifty. */
export function WindowedRows(props: {
  class: string
  label: string
  rowHeight: number
  count: number
  render: (index: number) => ComponentChildren
  keyOf: (index: number) => string | number
}): JSX.Element {
  const { rowHeight, count } = props
  const box = useRef<HTMLDivElement>(null)
  const [seen, setSeen] = useState({ from: 0, to: 40 })
  useLayoutEffect(() => {
    const element = box.current
    if (!element) return undefined
    const look = (): void => {
      const margin = 12
      const from = Math.max(0, Math.floor(element.scrollTop / rowHeight) - margin)
      const to = Math.ceil((element.scrollTop + element.clientHeight) / rowHeight) + margin
      setSeen((old) => (old.from === from && old.to === to ? old : { from, to }))
    }
    look()
    element.addEventListener('scroll', look, { passive: true })
    const size = new ResizeObserver(look)
    size.observe(element)
    return () => {
      element.removeEventListener('scroll', look)
      size.disconnect()
    }
  }, [rowHeight])
  const from = Math.min(seen.from, Math.max(0, count - 1))
  const to = Math.min(seen.to, count)
  const rows = []
  for (let index = from; index < to; index += 1)
    rows.push(
      <div
        key={props.keyOf(index)}
        class="window-row"
        style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
      >
        {props.render(index)}
      </div>,
    )
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keys must reach that
    <section ref={box} class={props.class} aria-label={props.label} tabIndex={0}>
      <div class="window" style={{ height: `${count * rowHeight}px` }}>
        {rows}
      </div>
    </section>
  )
}
