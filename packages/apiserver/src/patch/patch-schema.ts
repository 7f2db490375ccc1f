/** How strategic merge treats one field; what a schema says nothing about is merged as plain JSON. */
export interface PatchField {
  /** `merge` makes a list merge by key (or as a set of scalars), `replace` makes a map atomic. */
  readonly strategies: readonly ('merge' | 'replace' | 'retainKeys')[]
  readonly mergeKey?: string
  /** The type below: of a map's or struct's fields, or of a list's items. */
  readonly child?: PatchSchema
}

/** The merge rules of one type. */
export interface PatchSchema {
  field(name: string): PatchField | undefined
}
