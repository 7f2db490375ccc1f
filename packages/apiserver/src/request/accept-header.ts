import { apiError } from '../errors/api-error.js'

/** One kind of answer a client takes: a format, and how the object in it shall look. */
export interface AcceptClause {
  /** Clients that ask for protobuf also read JSON. */
  readonly format: 'json' | 'yaml' | 'protobuf'
  readonly parameters: ReadonlyMap<string, string>
}

const FORMATS: Readonly<Record<string, AcceptClause['format']>> = {
  'application/json': 'json',
  '*/*': 'json',
  'application/*': 'json',
  'application/yaml': 'yaml',
  'application/vnd.kubernetes.protobuf': 'protobuf',
}

/** Formats objects are written in. */
const WRITTEN = ['application/json', 'application/yaml']

/** What an Accept header asks for of what can be answered at all, the most wanted first. No header: JSON. */
export function acceptClauses(accept: string | undefined): AcceptClause[] {
  if (accept === undefined || accept.trim() === '') return [{ format: 'json', parameters: new Map() }]
  const clauses = accept.split(',').flatMap(parseClause)
  return clauses.sort((a, b) => b.quality - a.quality)
}

function parseClause(text: string): (AcceptClause & { quality: number })[] {
  const [type = '', ...rest] = text.split(';').map((part) => part.trim())
  const format = FORMATS[type.toLowerCase()]
  const parameters = new Map(rest.map((part) => splitOnce(part)))
  const quality = Number(parameters.get('q') ?? 1)
  return format && quality > 0 ? [{ format, parameters, quality }] : []
}

function splitOnce(text: string): [name: string, value: string] {
  const at = text.indexOf('=')
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

const META_KINDS = ['Table', 'PartialObjectMetadata', 'PartialObjectMetadataList']
const KNOWN_VERSIONS: Readonly<Record<string, readonly string[]>> = {
  'meta.k8s.io': ['v1', 'v1beta1'],
  'apidiscovery.k8s.io': ['v2', 'v2beta1'],
}

/** Whether a clause asks for objects as they are, or in a form that exists; a form is named by group, version and kind. */
export function isKnownForm({ parameters }: AcceptClause): boolean {
  const as = parameters.get('as')
  if (as === undefined) return true
  const group = parameters.get('g') ?? ''
  const isOfGroup = group === 'meta.k8s.io' ? META_KINDS.includes(as) : as === 'APIGroupDiscoveryList'
  return isOfGroup && (KNOWN_VERSIONS[group]?.includes(parameters.get('v') ?? '') ?? false)
}

/** 406: nothing of what the client takes can be answered. */
export const notAcceptable = (what: string = WRITTEN.join(', ')): Error =>
  apiError(406, 'NotAcceptable', `only the following media types are accepted: ${what}`)
