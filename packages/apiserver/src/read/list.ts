import { type KubeObject, type ListMeta, SelectorError } from '@corral/resources'
import type { ServerContext } from '../context/server-context.js'
import { apiError, badRequest, expired, type FieldError, forbiddenField, invalid } from '../errors/api-error.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import { queryInteger } from '../request/query.js'
import { type FieldSelector, parseFieldSelector } from '../selectors/field-selector.js'
import { type LabelMatcher, parseLabelSelector } from '../selectors/label-selector.js'
import type { Collection } from '../store/collection.js'
import { viewOf } from './view.js'

/** What a list or watch selects. */
export interface Selection {
  readonly namespace: string | undefined
  readonly labels: LabelMatcher | undefined
  readonly fields: FieldSelector | undefined
}

/** A snapshot: objects in the kind's version, ordered, with the list's metadata. */
export interface Listing {
  readonly metadata: ListMeta
  readonly items: readonly KubeObject[]
}

/** Reads the selectors of a request; 400 when one is malformed or not supported. */
export function parseSelection(kind: KindDefinition, namespace: string | undefined, query: URLSearchParams): Selection {
  try {
    const labels = parseLabelSelector(query.get('labelSelector'))
    return { namespace, labels, fields: parseFieldSelector(query.get('fieldSelector'), kind) }
  } catch (error) {
    throw error instanceof SelectorError ? badRequest(error.message) : error
  }
}

/** Whether the object, in the kind's version, is selected. */
export function isSelected(selection: Selection, object: KubeObject): boolean {
  if (selection.labels && !selection.labels(object)) return false
  return !selection.fields || selection.fields.matches(object)
}

const TOO_LARGE_WAIT_MS = 3000

/** The list a request asks for, paged when it has a limit. Waits for a version that is not there yet, up to 3 s. */
export async function listObjects(
  context: ServerContext,
  kind: KindDefinition,
  selection: Selection,
  query: URLSearchParams,
  signal?: AbortSignal,
): Promise<Listing> {
  checkListOptions(query)
  const { store } = context
  const collection = store.collection(kind.collection)
  const token = query.get('continue')
  const limit = queryInteger(query, 'limit') ?? 0
  const version = versionOf(query)
  if (version !== undefined && version > store.head) await waitForVersion(context, version, signal)

  const page = token ? decodeToken(token) : undefined
  if (page && version !== undefined) throw badRequest('specifying resource version is not allowed when using continue')
  // Who names a version and wants it in pages, and nothing else, means that version.
  const match = query.get('resourceVersionMatch') || (limit > 0 && version ? 'Exact' : '')
  const isExact = match === 'Exact'
  const rv = page?.rv ?? (isExact ? version : undefined) ?? store.head
  const objects = rv === store.head ? select(collection, selection) : collection.listAt(rv, selection.namespace)
  if (!objects) {
    throw page
      ? expired(
          'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.',
        )
      : expired('The resourceVersion for the provided list is too old.')
  }
  const hasSelector = Boolean(selection.labels || selection.fields)
  const matching = hasSelector || kind.toVersion ? filterViews(kind, objects, selection) : objects
  // A real server ignores the limit of a list at version 0 as well: reflectors expect everything.
  const isUnlimited = limit <= 0 || (version === 0 && !page)
  return cut(matching, page?.start, isUnlimited ? undefined : limit, rv, hasSelector)
}

/** The current selection at once, for the beginning of a watch. */
export function currentObjects(
  context: ServerContext,
  kind: KindDefinition,
  selection: Selection,
): readonly KubeObject[] {
  return filterViews(kind, select(context.store.collection(kind.collection), selection), selection)
}

function select(collection: Collection, selection: Selection): readonly KubeObject[] {
  const name = selection.fields?.name
  if (name === undefined || selection.namespace === undefined) return collection.list(selection.namespace)
  const object = collection.find(selection.namespace, name)
  return object ? [object] : []
}

function filterViews(
  kind: KindDefinition,
  objects: readonly KubeObject[],
  selection: Selection,
): readonly KubeObject[] {
  const result: KubeObject[] = []
  for (const object of objects) {
    const view = viewOf(kind, object)
    if (isSelected(selection, view)) result.push(view)
  }
  return result
}

function cut(
  objects: readonly KubeObject[],
  start: string | undefined,
  limit: number | undefined,
  rv: number,
  hasSelector: boolean,
): Listing {
  const metadata: ListMeta = { resourceVersion: String(rv) }
  const from = start === undefined ? 0 : objects.findIndex((object) => positionOf(object) > start)
  const rest = from < 0 ? [] : from === 0 ? objects : objects.slice(from)
  if (limit === undefined || rest.length <= limit) return { metadata, items: rest }
  const items = rest.slice(0, limit)
  metadata.continue = encodeToken({ v: 'meta.k8s.io/v1', rv, start: positionOf(items.at(-1)!) })
  if (!hasSelector) metadata.remainingItemCount = rest.length - limit
  return { metadata, items }
}

/** Sorts as the list is sorted: the separator is below every character of a name. */
const positionOf = (object: KubeObject): string =>
  `${object.metadata?.namespace ?? ''}\u0000${object.metadata?.name ?? ''}`

interface PageToken {
  v: string
  rv: number
  start: string
}

const encodeToken = (token: PageToken): string => Buffer.from(JSON.stringify(token)).toString('base64url')

function decodeToken(text: string): PageToken {
  try {
    const token = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Partial<PageToken>
    if (token.v === 'meta.k8s.io/v1' && typeof token.rv === 'number' && typeof token.start === 'string') {
      return { v: token.v, rv: token.rv, start: token.start }
    }
  } catch {
    // Falls through to the refusal below: whatever it was, it is not a token of ours.
  }
  throw badRequest('invalid continue token: continue key is not valid')
}

/** The version a request names; 400 when it is not a number. */
export function versionOf(query: URLSearchParams): number | undefined {
  const text = query.get('resourceVersion')
  if (text === null || text === '') return undefined
  const version = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(version)) {
    const parse = `strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`
    throw badRequest(`invalid resource version: resourceVersion: Invalid value: ${JSON.stringify(text)}: ${parse}`)
  }
  return version
}

function checkListOptions(query: URLSearchParams): void {
  const match = query.get('resourceVersionMatch') ?? ''
  const version = query.get('resourceVersion') ?? ''
  const errors: FieldError[] = []
  if (match !== '') {
    const field = 'resourceVersionMatch'
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      errors.push({
        reason: 'FieldValueNotSupported',
        field,
        message: `Unsupported value: ${JSON.stringify(match)}: supported values: "Exact", "NotOlderThan", ""`,
      })
    }
    if (version === '')
      errors.push(forbiddenField(field, 'resourceVersionMatch is forbidden unless resourceVersion is provided'))
    if (query.get('continue'))
      errors.push(forbiddenField(field, 'resourceVersionMatch is forbidden when continue is provided'))
    if (match === 'Exact' && version === '0') {
      errors.push(forbiddenField(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    }
  }
  if (query.has('sendInitialEvents')) {
    errors.push(forbiddenField('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  }
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', errors)
}

async function waitForVersion(context: ServerContext, version: number, signal?: AbortSignal): Promise<void> {
  const { store } = context
  const arrived = await new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => settle(false), TOO_LARGE_WAIT_MS)
    const onAbort = (): void => settle(false)
    const stop = store.listen(() => {
      if (store.head >= version) settle(true)
    })
    signal?.addEventListener('abort', onAbort, { once: true })
    function settle(value: boolean): void {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      stop()
      resolve(value)
    }
  })
  if (arrived) return
  throw apiError(504, 'Timeout', `Timeout: Too large resource version: ${version}, current: ${store.head}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  })
}

/** The list as it is answered. */
export function listValue(kind: KindDefinition, listing: Listing): ListValue {
  const head = { kind: kind.listKind, apiVersion: kind.apiVersion, metadata: listing.metadata }
  return Object.freeze({ ...head, items: Object.freeze(listing.items) })
}

interface ListValue {
  readonly items: readonly KubeObject[]
}

/** The list as it is sent. What the items of a built-in kind are is said once, by the list; custom ones say it again. */
export function listText(kind: KindDefinition, list: ListValue): string {
  return JSON.stringify(kind.isCustom ? list : { ...list, items: list.items.map(withoutType) })
}

function withoutType({ apiVersion: _version, kind: _kind, ...rest }: KubeObject): object {
  return rest
}
