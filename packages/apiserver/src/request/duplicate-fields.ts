/** An object or list that the scan is inside of. */
interface Level {
  /** Keys seen so far; undefined in a list. */
  readonly keys: Set<string> | undefined
  readonly path: string
  /** Of the value to come: the key it belongs to, or its place in the list. */
  key: string
  index: number
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * Paths of the fields that stand more than once in one object of a JSON text, which a parser silently drops all but the
 * last of. The text must be well-formed.
 */
export function duplicateFields(text: string): string[] {
  const found: string[] = []
  const levels: Level[] = []
  let level: Level | undefined
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = endOfString(text, at)
        if (level?.keys && nextMark(text, end) === COLON) addKey(level, text.slice(at, end), found)
        at = end - 1
        break
      }
      case OPEN_OBJECT:
      case OPEN_LIST: {
        const isList = text.charCodeAt(at) === OPEN_LIST
        level = { keys: isList ? undefined : new Set(), path: level ? pathInside(level) : '', key: '', index: 0 }
        levels.push(level)
        break
      }
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        levels.pop()
        level = levels.at(-1)
        break
      case COMMA:
        if (level && !level.keys) level.index += 1
    }
  }
  return found
}

function addKey(level: Level, quoted: string, found: string[]): void {
  // Escapes are rare enough to be left to the parser.
  const key: string = quoted.includes('\\') ? JSON.parse(quoted) : quoted.slice(1, -1)
  level.key = key
  if (level.keys!.has(key)) found.push(level.path === '' ? key : `${level.path}.${key}`)
  else level.keys!.add(key)
}

function pathInside({ keys, path, key, index }: Level): string {
  if (!keys) return `${path}[${index}]`
  return path === '' ? key : `${path}.${key}`
}

/** The position after the closing quote. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  for (;;) {
    at = text.indexOf('"', at)
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes += 1
    at += 1
    if (slashes % 2 === 0) return at
  }
}

function nextMark(text: string, start: number): number {
  let at = start
  while (text.charCodeAt(at) <= 0x20) at += 1
  return text.charCodeAt(at)
}
