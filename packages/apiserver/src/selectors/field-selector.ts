import { type KubeObject, parseFieldSelector as parseRequirements } from '@corral/resources'
import { badRequest } from '../errors/api-error.js'
import type { KindDefinition } from '../registry/kind-definition.js'

export interface FieldSelector {
  matches(object: KubeObject): boolean
  /** Set when only this name can match, which lets a list take one object instead of walking over all. */
  readonly name?: string
}

/** A parsed field selector for the kind; 400 for a field it does not have. Empty: undefined. */
export function parseFieldSelector(text: string | null, kind: KindDefinition): FieldSelector | undefined {
  if (text === null || text.trim() === '') return undefined
  const terms = parseRequirements(text).map(({ field, operator, value }) => ({
    field,
    isNegated: operator === '!=',
    value,
    read: readerOf(field, kind),
  }))
  const name = terms.find((term) => term.field === 'metadata.name' && !term.isNegated)?.value
  return {
    matches: (object) => terms.every((term) => (term.read(object) === term.value) !== term.isNegated),
    ...(name === undefined ? {} : { name }),
  }
}

function readerOf(field: string, kind: KindDefinition): (object: KubeObject) => string {
  if (field === 'metadata.name') return (object) => object.metadata?.name ?? ''
  if (field === 'metadata.namespace') return (object) => object.metadata?.namespace ?? ''
  const reader = Object.hasOwn(kind.selectable, field) ? kind.selectable[field] : undefined
  if (reader) return reader
  if (kind.isCustom || Object.keys(kind.selectable).length > 0) throw badRequest(`field label not supported: ${field}`)
  throw badRequest(`${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`)
}
