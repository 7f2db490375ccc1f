import type { ApiRequest, Clock } from '@corral/ports'
import type { KubeObject } from '@corral/resources'
import { apiError, badRequest, invalidValue } from '../errors/api-error.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import { type AcceptClause, acceptClauses, isKnownForm, notAcceptable } from '../request/accept-header.js'
import { queryFlag } from '../request/query.js'
import {
  builtInPrinter,
  customPrinter,
  type IncludeObject,
  type MetaVersion,
  type TablePrinter,
  toPartialObjectMetadata,
  toTable,
} from '../table/index.js'
import type { Listing } from './list.js'
import { type EventRepresentation, plainRepresentation } from './representation.js'
import { viewOf } from './view.js'

/** How the caller wants to see objects. */
export type WantedForm =
  | { readonly type: 'plain' }
  | { readonly type: 'partial'; readonly version: MetaVersion }
  | { readonly type: 'table'; readonly version: MetaVersion; readonly include: IncludeObject }

const PLAIN: WantedForm = { type: 'plain' }

/** The most wanted clause of the Accept header that can be served decides; 406 when there is none. */
export function wantedForm(request: ApiRequest, isList = false): WantedForm {
  const { accept } = request.headers
  if (accept === undefined || accept === '' || accept === 'application/json') return PLAIN
  const isWatch = isList && queryFlag(request.query, 'watch')
  let isAcceptable = false
  for (const clause of acceptClauses(accept)) {
    if (clause.format === 'protobuf') isAcceptable = true
    else if (isKnownForm(clause) && !(isWatch && clause.format === 'yaml'))
      return formOf(clause, request, isList, isWatch)
  }
  if (isAcceptable) return PLAIN
  throw notAcceptable(isWatch ? 'application/json;stream=watch' : undefined)
}

function formOf({ parameters }: AcceptClause, request: ApiRequest, isList: boolean, isWatch: boolean): WantedForm {
  const as = parameters.get('as')
  if (as === undefined || as === 'APIGroupDiscoveryList') return PLAIN
  const version = parameters.get('v') === 'v1beta1' ? 'v1beta1' : 'v1'
  if (as === 'Table') return { type: 'table', version, include: includedObject(request.query) }
  if ((as === 'PartialObjectMetadataList') === isList || isWatch) return { type: 'partial', version }
  const why = `you requested ${as}, but the requested object is ${isList ? '' : 'not '}a list`
  throw apiError(406, 'NotAcceptable', why)
}

function includedObject(query: URLSearchParams): IncludeObject {
  const wish = query.get('includeObject') || 'Metadata'
  if (wish === 'None' || wish === 'Metadata' || wish === 'Object') return wish
  const { field, message } = invalidValue('includeObject', wish, "must be 'Metadata', 'Object', 'None', or empty")
  throw badRequest(`Unable to convert to Table as requested: ${field}: ${message}`)
}

type Shown = Exclude<WantedForm, { type: 'plain' }>

/** One object in another form than its own. */
export function presentObject(kind: KindDefinition, object: KubeObject, form: Shown, now: Date): object {
  if (form.type === 'partial') return toPartialObjectMetadata(object, form.version)
  return toTable([object], { printer: printerOf(kind), now, includeObject: form.include, metaVersion: form.version })
}

/** What a write has left, in the form its request asks for. */
export function presentWritten(kind: KindDefinition, stored: KubeObject, form: WantedForm, now: Date): object {
  const object = viewOf(kind, stored)
  return form.type === 'plain' ? object : presentObject(kind, object, form, now)
}

/** A list in another form than its own. */
export function presentList(kind: KindDefinition, listing: Listing, form: Shown, now: Date): object {
  const { metadata, items } = listing
  if (form.type === 'partial') {
    return {
      kind: 'PartialObjectMetadataList',
      apiVersion: `meta.k8s.io/${form.version}`,
      metadata,
      items: items.map((item) => toPartialObjectMetadata(item, form.version)),
    }
  }
  const { version: metaVersion, include: includeObject } = form
  return toTable(items, { printer: printerOf(kind), now, includeObject, metaVersion, metadata })
}

/** The events of a watch in the wanted form. */
export function presentEvents(kind: KindDefinition, form: WantedForm, clock: Clock): EventRepresentation {
  if (form.type === 'plain') return plainRepresentation(kind.apiVersion, kind.kind)
  if (form.type === 'partial') {
    const plain = plainRepresentation(`meta.k8s.io/${form.version}`, 'PartialObjectMetadata')
    return {
      ...plain,
      cacheKey: `partial ${form.version} ${kind.apiVersion}`,
      show: (object) => toPartialObjectMetadata(object, form.version) as KubeObject,
    }
  }
  let isFirst = true
  const printer = printerOf(kind)
  const table = (objects: readonly KubeObject[], metadata?: object): KubeObject => {
    const omitColumns = !isFirst
    isFirst = false
    return toTable(objects, {
      printer,
      now: clock.now(),
      includeObject: form.include,
      metaVersion: form.version,
      omitColumns,
      ...(metadata ? { metadata } : {}),
    }) as unknown as KubeObject
  }
  return {
    cacheKey: undefined,
    show: (object) => table([object]),
    bookmark(resourceVersion, annotations) {
      const object = plainRepresentation(kind.apiVersion, kind.kind).bookmark(resourceVersion, annotations)
      return { ...table([], { resourceVersion }), rows: [{ cells: [], object }] } as KubeObject
    },
  }
}

const printers = new WeakMap<KindDefinition, TablePrinter>()

function printerOf(kind: KindDefinition): TablePrinter {
  let printer = printers.get(kind)
  if (!printer) {
    printer = makePrinter(kind)
    printers.set(kind, printer)
  }
  return printer
}

function makePrinter(kind: KindDefinition): TablePrinter {
  const builtIn = kind.isCustom ? undefined : builtInPrinter(kind.group, kind.kind)
  return builtIn ?? customPrinter(kind.printerColumns ?? [])
}
