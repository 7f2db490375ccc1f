import {
  boolYaml11Tag,
  CORE_SCHEMA,
  eventsToAst,
  intCoreTag,
  intYaml11Tag,
  loadAll,
  mergeTag,
  NOT_RESOLVED,
  parseEvents,
  type Schema,
} from 'js-yaml'
import { badRequest } from '../errors/api-error.js'
import { copyJson } from '../objects/plain-json.js'

const integerTag: typeof intYaml11Tag = {
  ...intYaml11Tag,
  resolve(source, ...rest) {
    if (source.includes(':')) return NOT_RESOLVED
    return (/^[-+]?0o/.test(source) ? intCoreTag : intYaml11Tag).resolve(source, ...rest)
  },
}

/**
 * Scalars as Kubernetes reads them: `yes` and `on` are true, `0644` and `0o644` octal, as in YAML 1.1 and 1.2, while
 * times and `12:30` are text.
 */
const schema: Schema = CORE_SCHEMA.withTags(boolYaml11Tag, integerTag, mergeTag)

/** More than a body of the largest size can say without aliases. */
const MAX_NODES = 3_000_000

/**
 * The first document of a YAML text as plain JSON; 400 when it is none. A key that stands twice counts with its last
 * value, and its path is added to `duplicates`.
 */
export function parseYamlText(text: string, duplicates?: string[]): unknown {
  try {
    const [document = null] = loadAll(text, { schema, json: true })
    if (text.includes('*')) checkSize(document)
    if (duplicates && document !== null) duplicates.push(...duplicateKeys(text))
    return copyJson(document)
  } catch (error) {
    throw badRequest(`error converting YAML to JSON: ${(error as Error).message.split('\n')[0]}`)
  }
}

/** A few aliases of aliases can stand for more than any memory holds. */
function checkSize(document: unknown): void {
  const waiting = [document]
  for (let seen = 0; waiting.length > 0; seen++) {
    const value = waiting.pop()
    if (typeof value === 'object' && value !== null) waiting.push(...Object.values(value))
    if (seen > MAX_NODES) throw new Error('document contains excessive aliasing')
  }
}

type Node = NonNullable<ReturnType<typeof eventsToAst>[number]['contents']>

function duplicateKeys(text: string): string[] {
  const [document] = eventsToAst(parseEvents(text, {}), { source: text, schema })
  return document?.contents ? duplicatesIn(document.contents, '') : []
}

function duplicatesIn(node: Node, path: string): string[] {
  if (node.kind === 'sequence') return node.items.flatMap((item, index) => duplicatesIn(item, `${path}[${index}]`))
  if (node.kind !== 'mapping') return []
  const seen = new Set<string>()
  return node.items.flatMap(({ key, value }) => {
    if (key.kind !== 'scalar') return []
    const at = path === '' ? key.value : `${path}.${key.value}`
    const inside = duplicatesIn(value, at)
    if (!seen.has(key.value)) {
      seen.add(key.value)
      return inside
    }
    return [at, ...inside]
  })
}
