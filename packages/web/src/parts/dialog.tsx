import type { ComponentChildren, JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

/** A modal dialog: the browser keeps the focus in it and Escape closes it. */
export function Dialog(props: {
  label: string
  class?: string
  onClose: () => void
  children: ComponentChildren
}): JSX.Element {
  const element = useRef<HTMLDialogElement>(null)
  // Before the next key: a dialog that opens after the paint loses what is typed in between.
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={element}
      aria-label={props.label}
      class={props.class ?? ''}
      onCancel={(event) => {
        event.preventDefault()
        props.onClose()
      }}
      onMouseDown={(event) => {
        if (event.target === element.current) props.onClose()
      }}
    >
      <div class="dialog-body">{props.children}</div>
    </dialog>
  )
}
