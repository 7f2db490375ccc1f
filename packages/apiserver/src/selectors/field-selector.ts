import type { KubeObject } from '@corral/resources'
import { badRequest } from '../errors/api-error.js'
import type { KindDefinition } from '../registry/kind-definition.js'

export interface FieldSelector {
  matches(object: KubeObject): boolean
  /** Set when only this name can match, which lets a list take one object instead of walking over all. */
  readonly name?: string
}

/** A parsed field selector for the kind; 400 for an unknown field or bad syntax. Empty: undefined. */
export function parseFieldSelector(text: string | null, kind: KindDefinition): FieldSelector | undefined {
  if (text === null || text.trim() === '') return undefined
  const terms = split(text, ',').map((term) => parseTerm(term, kind))
  const name = terms.find((term) => term.field === 'metadata.name' && !term.isNegated)?.value
  return {
    matches: (object) => terms.every((term) => (term.read(object) === term.value) !== term.isNegated),
    ...(name === undefined ? {} : { name }),
  }
}

function parseTerm(
  term: string,
  kind: KindDefinition,
): { field: string; value: string; isNegated: boolean; read(object: KubeObject): string } {
  const at = findUnescaped(term, '=')
  if (at < 0) throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`)
  const isNegated = term[at - 1] === '!'
  const field = term.slice(0, isNegated ? at - 1 : at).trim()
  const rest = term.slice(at + 1)
  const value = withoutEscapes(rest.startsWith('=') ? rest.slice(1) : rest)
  return { field, value, isNegated, read: readerOf(field, kind) }
}

function readerOf(field: string, kind: KindDefinition): (object: KubeObject) => string {
  if (field === 'metadata.name') return (object) => object.metadata?.name ?? ''
  if (field === 'metadata.namespace') return (object) => object.metadata?.namespace ?? ''
  const reader = Object.hasOwn(kind.selectable, field) ? kind.selectable[field] : undefined
  if (!reader && !kind.isCustom && Object.keys(kind.selectable).length === 0) {
    throw badRequest(
      `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
    )
  }
  if (!reader) throw badRequest(`field label not supported: ${field}`)
  return reader
}

function findUnescaped(text: string, character: string): number {
  for (let index = 0; index < text.length; index++) {
    if (text[index] === '\\') index++
    else if (text[index] === character) return index
  }
  return -1
}

function split(text: string, separator: string): string[] {
  const parts: string[] = []
  let rest = text
  while (true) {
    const at = findUnescaped(rest, separator)
    if (at < 0) break
    parts.push(rest.slice(0, at))
    rest = rest.slice(at + 1)
  }
  return [...parts, rest].filter((part) => part !== '')
}

function withoutEscapes(value: string): string {
  if (!value.includes('\\')) return value
  return value.replace(/\\(.?)/g, (_match, character: string) => {
    if (character !== ',' && character !== '=' && character !== '\\') {
      throw badRequest(`invalid field selector: invalid escape sequence: \\${character}`)
    }
    return character
  })
}
