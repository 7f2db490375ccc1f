import type { TerminalFrame } from '@corral/protocol'
import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'

export type TerminalState =
  | { readonly kind: 'opening' | 'open' }
  | { readonly kind: 'lost' }
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'failed'; readonly message: string; readonly hint?: string | undefined }

export interface TerminalView {
  type(text: string): void
  close(): void
}

const scrollback = 5_000
const pauseMs = 1_000

/**
 * A terminal on its own WebSocket. The shell is named in this tab's storage, so that loading the page again joins it; a
 * lost connection continues at the byte it broke at.
 */
export function openTerminal(
  place: HTMLElement,
  options: { task: string; isNew: boolean; onState: (state: TerminalState) => void },
): TerminalView {
  const letStylesIn = adoptStyles()
  const terminal = new Terminal({
    scrollback,
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono'),
    fontSize: 13,
    lineHeight: 1.25,
    cursorBlink: true,
    // No links by escape codes: their text and their target need not agree.
    linkHandler: { activate: () => undefined },
    theme: themeOf(place),
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  terminal.open(place)
  fit.fit()
  terminal.focus()

  const key = `corral.terminal.${options.task}`
  const session = (!options.isNew && sessionStorage.getItem(key)) || crypto.randomUUID()
  sessionStorage.setItem(key, session)
  let offset = 0
  let socket: WebSocket | undefined
  let isClosed = false
  let isOver = false
  let timer: ReturnType<typeof setTimeout> | undefined

  const send = (data: string | Uint8Array<ArrayBuffer>): void => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(data)
  }
  const type = (text: string): void => send(new TextEncoder().encode(text))

  const connect = (): void => {
    const url = new URL(`/tasks/${encodeURIComponent(options.task)}/terminal`, window.location.href)
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    const { cols, rows } = terminal
    for (const [name, value] of Object.entries({ session, from: offset, columns: cols, rows }))
      url.searchParams.set(name, String(value))
    const mine = new WebSocket(url)
    mine.binaryType = 'arraybuffer'
    socket = mine
    mine.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
      if (typeof data === 'string') return told(JSON.parse(data) as TerminalFrame) // our own server wrote it
      offset += data.byteLength
      terminal.write(new Uint8Array(data))
    }
    mine.onclose = () => {
      if (isClosed || isOver) return
      options.onState({ kind: 'lost' })
      timer = setTimeout(connect, pauseMs)
    }
  }
  const told = (frame: TerminalFrame): void => {
    if (frame.type === 'ready') options.onState({ kind: 'open' })
    else if (frame.type === 'gap') offset += frame.bytes
    else if (frame.type === 'exit') {
      isOver = true
      options.onState({ kind: 'exited', code: frame.code })
    } else {
      isOver = true
      options.onState({ kind: 'failed', message: frame.error.message, hint: frame.error.hint })
    }
  }

  terminal.onData(type)
  terminal.onResize(({ cols, rows }) => send(JSON.stringify({ type: 'resize', columns: cols, rows })))
  const size = new ResizeObserver(() => fit.fit())
  size.observe(place)
  connect()

  return {
    type(text) {
      type(text)
      terminal.focus()
    },
    close() {
      isClosed = true
      clearTimeout(timer)
      size.disconnect()
      socket?.close()
      terminal.dispose()
      letStylesIn()
    },
  }
}

/** Colours of the page: computed ones, because a terminal does not know `light-dark()`. */
function themeOf(place: HTMLElement): { background: string; foreground: string; cursor: string } {
  const { backgroundColor, color } = getComputedStyle(place)
  return { background: backgroundColor, foreground: color, cursor: color }
}

/**
 * The terminal writes its rules into `<style>` elements, which our content security policy refuses. Their text becomes
 * sheets of the document instead, which scripts of our own may add.
 */
function adoptStyles(): () => void {
  const sheets = new Map<Node, CSSStyleSheet>()
  const adopt = (element: HTMLStyleElement): void => {
    const sheet = sheets.get(element) ?? new CSSStyleSheet()
    sheet.replaceSync(element.textContent ?? '')
    if (!sheets.has(element)) {
      sheets.set(element, sheet)
      document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
    }
  }
  const observer = new MutationObserver((records) => {
    for (const { target, addedNodes } of records) {
      const style = target instanceof HTMLStyleElement ? target : target.parentNode
      if (style instanceof HTMLStyleElement) adopt(style)
      for (const node of addedNodes) if (node instanceof HTMLStyleElement) adopt(node)
    }
  })
  observer.observe(document, { childList: true, subtree: true, characterData: true })
  return () => {
    observer.disconnect()
    const ours = new Set(sheets.values())
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !ours.has(sheet))
  }
}
