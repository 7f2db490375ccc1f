import type { CustomResourceColumnDefinition, KubeObject } from '@corral/resources'
import { nameCell } from './core-printers.js'
import { ageOf } from './human-duration.js'
import { compileJsonPath, type JsonPath } from './json-path.js'
import { column, type TablePrinter } from './printer.js'

const DEFAULT_COLUMNS: readonly CustomResourceColumnDefinition[] = [
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
]

/** The printer of a CRD version from its `additionalPrinterColumns`; without any, Name and Age. */
export function customPrinter(columns: readonly CustomResourceColumnDefinition[] | undefined): TablePrinter {
  const declared = columns?.length ? columns : DEFAULT_COLUMNS
  const paths = declared.map(({ jsonPath }) => compileJsonPath(jsonPath))
  return {
    columns: [
      column('Name'),
      ...declared.map((each) => ({
        name: each.name,
        type: each.type,
        format: each.format ?? '',
        description: each.description ?? '',
        priority: each.priority ?? 0,
      })),
    ],
    cells: (object: KubeObject, now: Date) => [
      nameCell(object),
      ...declared.map((each, i) => cell(each.type, paths[i]!, object, now)),
    ],
  }
}

/** A missing value is null, which kubectl leaves blank. */
function cell(type: string, path: JsonPath, object: KubeObject, now: Date): unknown {
  const values = path(object).filter((value) => value !== null)
  const [first] = values
  if (first === undefined) return null
  switch (type) {
    case 'integer':
      return typeof first === 'number' ? Math.trunc(first) : null
    case 'number':
      return typeof first === 'number' ? first : null
    case 'boolean':
      return typeof first === 'boolean' ? first : null
    case 'date':
      return typeof first === 'string' && !Number.isNaN(Date.parse(first)) ? ageOf(first, now) : '<invalid>'
    default:
      return values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))).join(',')
  }
}
