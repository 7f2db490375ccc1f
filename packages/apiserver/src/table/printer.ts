import type { KubeObject } from '@corral/resources'

/** A column as `meta.k8s.io/v1` Table describes it. */
export interface ColumnDefinition {
  readonly name: string
  readonly type: string
  readonly format: string
  readonly description: string
  /** 0 is always shown, 1 with `-o wide`. */
  readonly priority: number
}

export interface RowCondition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}

/** How the objects of one kind become rows. */
export interface TablePrinter {
  readonly columns: readonly ColumnDefinition[]
  cells(object: KubeObject, now: Date): unknown[]
  conditions?(object: KubeObject): RowCondition[] | undefined
}

type CellOf<T> = (object: T, now: Date) => unknown

/** One column: its name, what to show, and `wide` for those of `-o wide`. */
export interface ColumnOptions {
  readonly wide?: boolean
  readonly type?: string
  readonly description?: string
}

type Column<T> = readonly [name: string, cell: CellOf<T>, options?: ColumnOptions]

/** A printer from a list of columns. The first column of a kind is its name unless it says otherwise. */
export function printer<T extends KubeObject>(
  columns: readonly Column<T>[],
  conditions?: (object: T) => RowCondition[] | undefined,
): TablePrinter {
  return {
    columns: columns.map(([name, , options]) => column(name, options)),
    // A printer is registered under the kind whose objects it is given.
    cells: (object, now) => columns.map(([, cell]) => cell(object as T, now)),
    ...(conditions && { conditions: (object: KubeObject) => conditions(object as T) }),
  }
}

/** The description of one column. */
export function column(name: string, options: ColumnOptions = {}): ColumnDefinition {
  return {
    name,
    type: options.type ?? 'string',
    format: name === 'Name' ? 'name' : '',
    description: options.description ?? '',
    priority: options.wide ? 1 : 0,
  }
}
