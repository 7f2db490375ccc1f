/** The causes Kubernetes puts into the details of a 422. */
export type FieldErrorReason =
  | 'FieldValueInvalid'
  | 'FieldValueRequired'
  | 'FieldValueNotSupported'
  | 'FieldValueTypeInvalid'
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueNotFound'

/** One problem of one field: `message` is the text after `field: ` in a Status message. */
export interface FieldError {
  readonly reason: FieldErrorReason
  /** `spec.containers[0].name`; `<nil>` where the problem belongs to no single field. */
  readonly field: string
  readonly message: string
}

/** A value as Kubernetes prints it inside an error: text quoted, everything else as JSON. */
export function printValue(value: unknown): string {
  return JSON.stringify(value) ?? 'null'
}

function withDetail(head: string, detail: string): string {
  return detail ? `${head}: ${detail}` : head
}

/** `Invalid value: <value>: <detail>` */
export function invalidValue(field: string, value: unknown, detail: string): FieldError {
  return {
    reason: 'FieldValueInvalid',
    field: field || '<nil>',
    message: withDetail(`Invalid value: ${printValue(value)}`, detail),
  }
}

/** As `invalidValue`, for a value of the wrong JSON type. */
export function typeInvalid(field: string, value: unknown, detail: string): FieldError {
  return { ...invalidValue(field, value, detail), reason: 'FieldValueTypeInvalid' }
}

/** `Required value` */
export function requiredValue(field: string, detail = ''): FieldError {
  return { reason: 'FieldValueRequired', field: field || '<nil>', message: withDetail('Required value', detail) }
}

/** `Forbidden: <detail>` */
export function forbidden(field: string, detail: string): FieldError {
  return { reason: 'FieldValueForbidden', field: field || '<nil>', message: withDetail('Forbidden', detail) }
}

/** `Duplicate value: <value>` */
export function duplicateValue(field: string, value: unknown): FieldError {
  return { reason: 'FieldValueDuplicate', field: field || '<nil>', message: `Duplicate value: ${printValue(value)}` }
}

/** `Unsupported value: <value>: supported values: "A", "B"` */
export function notSupported(field: string, value: unknown, supported: readonly unknown[]): FieldError {
  const names = supported.map((each) => JSON.stringify(typeof each === 'string' ? each : JSON.stringify(each)))
  const detail = names.length > 0 ? `supported values: ${names.join(', ')}` : ''
  return {
    reason: 'FieldValueNotSupported',
    field: field || '<nil>',
    message: withDetail(`Unsupported value: ${printValue(value)}`, detail),
  }
}

/** `Too long: may not be more than N bytes` */
export function tooLong(field: string, maxLength: number): FieldError {
  const unit = maxLength === 1 ? 'byte' : 'bytes'
  return {
    reason: 'FieldValueTooLong',
    field: field || '<nil>',
    message: `Too long: may not be more than ${maxLength} ${unit}`,
  }
}

/** `Too many: <actual>: must have at most N items` */
export function tooMany(field: string, actual: number, max: number): FieldError {
  const unit = max === 1 ? 'item' : 'items'
  return {
    reason: 'FieldValueTooMany',
    field: field || '<nil>',
    message: `Too many: ${actual}: must have at most ${max} ${unit}`,
  }
}

/** Several field errors as the tail of a Status message: one as it is, more in brackets. */
export function joinFieldErrors(errors: readonly FieldError[]): string {
  const texts = [...new Set(errors.map((error) => `${error.field}: ${error.message}`))]
  return texts.length === 1 ? texts[0]! : `[${texts.join(', ')}]`
}
