export { builtInPrinter } from './built-in-printers.js'
export { customPrinter } from './custom-printer.js'
export { ageOf, humanDuration } from './human-duration.js'
export { compileJsonPath } from './json-path.js'
export type { TablePrinter } from './printer.js'
export {
  type IncludeObject,
  type MetaVersion,
  toPartialObjectMetadata,
  toTable,
} from './table.js'
