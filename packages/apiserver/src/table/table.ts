import type { KubeObject, ListMeta, ObjectMeta } from '@corral/resources'
import type { ColumnDefinition, RowCondition, TablePrinter } from './printer.js'

/** What each row carries of the object it shows. */
export type IncludeObject = 'None' | 'Metadata' | 'Object'

/** Version under which the meta types are asked for. */
export type MetaVersion = 'v1' | 'v1beta1'

export interface TableRow {
  readonly cells: unknown[]
  readonly conditions?: RowCondition[]
  readonly object?: unknown
}

export interface Table {
  readonly kind: 'Table'
  readonly apiVersion: string
  readonly metadata: ListMeta
  readonly columnDefinitions: readonly ColumnDefinition[]
  readonly rows: TableRow[]
}

export interface PartialObjectMetadata {
  readonly kind: 'PartialObjectMetadata'
  readonly apiVersion: string
  readonly metadata: ObjectMeta
}

export interface TableOptions {
  readonly printer: TablePrinter
  readonly now: Date
  readonly includeObject?: IncludeObject
  readonly metaVersion?: MetaVersion
  /** Of the list. A single object's table carries the object's resource version. */
  readonly metadata?: ListMeta
  /** Watch events after the first leave the columns out. */
  readonly omitColumns?: boolean
}

/** A list, a single object or the object of one watch event as a Table. */
export function toTable(objects: readonly KubeObject[], options: TableOptions): Table {
  const { printer, metaVersion = 'v1' } = options
  const resourceVersion = objects.length === 1 ? objects[0]?.metadata?.resourceVersion : undefined
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${metaVersion}`,
    metadata: options.metadata ?? (resourceVersion === undefined ? {} : { resourceVersion }),
    columnDefinitions: options.omitColumns ? [] : printer.columns,
    rows: objects.map((object) => toRow(object, options, metaVersion)),
  }
}

function toRow(object: KubeObject, options: TableOptions, metaVersion: MetaVersion): TableRow {
  const { printer, now, includeObject = 'Metadata' } = options
  const conditions = printer.conditions?.(object)
  return {
    cells: printer.cells(object, now),
    ...(conditions && { conditions }),
    ...(includeObject === 'None' && { object: null }),
    ...(includeObject === 'Object' && { object }),
    ...(includeObject === 'Metadata' && { object: toPartialObjectMetadata(object, metaVersion) }),
  }
}

/** The metadata of an object and nothing else. */
export function toPartialObjectMetadata(object: KubeObject, metaVersion: MetaVersion = 'v1'): PartialObjectMetadata {
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: `meta.k8s.io/${metaVersion}`,
    metadata: object.metadata ?? {},
  }
}
