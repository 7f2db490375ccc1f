import { EVENT_ID, type Event, parseEvents } from 'js-yaml'

/** A value of a document: where it begins, and what it holds; of an object its keys, each before its value. */
interface Node {
  start: number
  /** Of a key, or another plain value: as it is written. */
  text: string
  children: Node[]
}

/** Where a field of a YAML text is, or what of its path there is: `line 4, column 5`. Pure. */
export function yamlPlace(text: string, path: readonly PropertyKey[]): string {
  let at: Node | undefined = treeOf(text)
  let start = at?.start ?? 0
  for (const part of path) {
    const index: number = typeof part === 'number' ? part : keyIndex(at, String(part))
    const named: Node | undefined = at?.children[index]
    if (!named || named.start < 0) break
    start = named.start
    at = typeof part === 'number' ? named : at?.children[index + 1]
  }
  const lines = text.slice(0, start).split('\n')
  return `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`
}

function keyIndex(node: Node | undefined, key: string): number {
  return node?.children.findIndex((child, index) => index % 2 === 0 && child.text === key) ?? -1
}

function treeOf(text: string): Node | undefined {
  const root: Node = { start: 0, text: '', children: [] }
  const open = [root]
  for (const event of parseEvents(text, {})) {
    if (event.type === EVENT_ID.POP) {
      open.pop()
      continue
    }
    const node = { start: startOf(event), text: textOf(event, text), children: [] }
    open.at(-1)?.children.push(node)
    if (event.type !== EVENT_ID.SCALAR && event.type !== EVENT_ID.ALIAS) open.push(node)
  }
  return root.children[0]?.children[0]
}

function startOf(event: Event): number {
  if (event.type === EVENT_ID.SCALAR) return event.valueStart
  if (event.type === EVENT_ID.ALIAS) return event.anchorStart
  return 'start' in event ? event.start : 0
}

function textOf(event: Event, text: string): string {
  return event.type === EVENT_ID.SCALAR ? text.slice(Math.max(event.valueStart, 0), Math.max(event.valueEnd, 0)) : ''
}
