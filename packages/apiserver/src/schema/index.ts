export { type CompiledSchema, compileSchema, prepareSchema } from './compile.js'
export {
  duplicateValue,
  type FieldError,
  type FieldErrorReason,
  forbidden,
  invalidValue,
  joinFieldErrors,
  notSupported,
  requiredValue,
  tooLong,
  tooMany,
  typeInvalid,
} from './field-error.js'
export type { JsonSchema, ValidationRule } from './json-schema.js'
export { isRecord, type JsonRecord, jsonCopy, jsonEqual } from './json-value.js'
export type { Pruned } from './prune.js'
export { checkStructural } from './structural.js'
export { validateCrd } from './validate-crd.js'
