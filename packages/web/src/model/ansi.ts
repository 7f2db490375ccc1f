import { revealed } from './hidden-characters.js'

/** Text with the colours a program asked for. Every other escape (cursor, links, clipboard, titles) is dropped. */
export interface Span {
  readonly text: string
  /** A colour of the theme: 0-7 normal, 8-15 bright. */
  readonly color?: number
  readonly isBold?: boolean
  readonly isDim?: boolean
}

interface Style {
  color?: number
  isBold?: boolean
  isDim?: boolean
}

// CSI, OSC (ended by BEL or ST), other two-character escapes, and control characters but tab and newline.
const escapes =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escapes of terminals are control characters
  /\u001b\[([0-9;:?<=>]*)[ -/]*([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[PX^_][^\u001b]*(?:\u001b\\)?|\u001b[@-Z\\-_a-z0-9=>]?|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g

/** A carriage return without newline writes the line anew: what stands before it is replaced, as on a terminal. */
export function ansiSpans(text: string): Span[] {
  const spans: Span[] = []
  let style: Style = {}
  let at = 0
  const add = (piece: string): void => {
    if (piece) spans.push({ text: revealed(piece), ...style })
  }
  const source = rewritten(text)
  for (const match of source.matchAll(escapes)) {
    add(source.slice(at, match.index))
    at = match.index + match[0].length
    if (match[2] === 'm') style = restyled(style, match[1] ?? '')
  }
  add(source.slice(at))
  return spans
}

/** By hand and not by a pattern: a program may print a line of megabytes, and patterns look through the rest of it at each letter. */
function rewritten(text: string): string {
  const lines = text.split('\n')
  return lines
    .map((line, index) => {
      let end = line.length
      if (index < lines.length - 1) while (line[end - 1] === '\r') end -= 1
      // A return at the very end has nothing yet to replace the line with.
      const at = end < 2 ? -1 : line.lastIndexOf('\r', end - 2)
      return line.slice(at + 1, end)
    })
    .join('\n')
}

/** The text alone. */
export const plainText = (text: string): string =>
  ansiSpans(text)
    .map((span) => span.text)
    .join('')

function restyled(style: Style, parameters: string): Style {
  const codes = parameters === '' ? [0] : parameters.split(/[;:]/).map(Number)
  let next = { ...style }
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] ?? 0
    if (code === 0) next = {}
    else if (code === 1) next.isBold = true
    else if (code === 2) next.isDim = true
    else if (code === 22) next = without(next, 'isBold', 'isDim')
    else if (code >= 30 && code <= 37) next.color = code - 30
    else if (code >= 90 && code <= 97) next.color = code - 90 + 8
    else if (code === 39) next = without(next, 'color')
    else if (code === 38 || code === 48) {
      // 256 colours and RGB: only the first sixteen have a place in the theme; the rest keep the text's own colour.
      const isIndexed = codes[index + 1] === 5
      const color = codes[index + 2] ?? 0
      if (code === 38) next = isIndexed && color < 16 ? { ...next, color } : without(next, 'color')
      index += isIndexed ? 2 : 4
    }
  }
  return next
}

function without(style: Style, ...names: (keyof Style)[]): Style {
  const next = { ...style }
  for (const name of names) delete next[name]
  return next
}
