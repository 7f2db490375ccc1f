export { builtInPrinter } from './built-in-printers.js'
export { customPrinter } from './custom-printer.js'
export { ageOf, humanDuration } from './human-duration.js'
export { compileJsonPath, type JsonPath, JsonPathError } from './json-path.js'
export type { ColumnDefinition, RowCondition, TablePrinter } from './printer.js'
export {
  type IncludeObject,
  type MetaVersion,
  type PartialObjectMetadata,
  type Table,
  type TableOptions,
  type TableRow,
  toPartialObjectMetadata,
  toTable,
} from './table.js'
