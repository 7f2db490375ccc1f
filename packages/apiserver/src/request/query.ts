import { apiError, type FieldError, invalid, invalidValue, notSupported } from '../errors/api-error.js'

/** Kubernetes' booleans: absent, `0` and `false` in any case are false; everything else, even empty, is true. */
export function queryFlag(query: URLSearchParams, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}

/** A whole number from the query, undefined when absent or empty; 400 when it is none. */
export function queryInteger(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name)
  if (value === null || value === '') return undefined
  const number = Number(value)
  if (!Number.isSafeInteger(number)) {
    throw apiError(400, 'BadRequest', `strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax`)
  }
  return number
}

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'

/** How a write wants to be carried out, from its query. */
export interface WriteOptions {
  readonly dryRun: boolean
  readonly fieldManager: string | undefined
  readonly fieldValidation: FieldValidation
  readonly force: boolean
}

/** Reads and checks the options every write shares; `kind` names them in the refusal. */
export function parseWriteOptions(query: URLSearchParams, kind: string): WriteOptions {
  const errors: FieldError[] = []
  const dryRun = query.getAll('dryRun')
  if (dryRun.some((value) => value !== 'All')) errors.push(notSupported('dryRun', dryRun, ['All']))
  const fieldValidation = query.get('fieldValidation') || 'Warn'
  if (!isFieldValidation(fieldValidation)) {
    errors.push(notSupported('fieldValidation', fieldValidation, ['', 'Ignore', 'Strict', 'Warn']))
  }
  const fieldManager = query.get('fieldManager') || undefined
  if (fieldManager && fieldManager.length > 128) {
    errors.push({
      reason: 'FieldValueTooLong',
      field: 'fieldManager',
      message: 'Too long: may not be more than 128 bytes',
    })
  } else if (fieldManager && !/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u.test(fieldManager)) {
    errors.push(invalidValue('fieldManager', fieldManager, 'should only contain printable characters'))
  }
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind }, '', errors)
  return {
    dryRun: dryRun.length > 0,
    fieldManager,
    fieldValidation: fieldValidation as FieldValidation,
    force: queryFlag(query, 'force'),
  }
}

const isFieldValidation = (value: string): value is FieldValidation =>
  value === 'Ignore' || value === 'Warn' || value === 'Strict'

/** Name of the field manager where the query gives none: the user agent up to its first slash. */
export function managerFromUserAgent(userAgent: string | undefined): string {
  const name = (userAgent ?? '').split('/')[0] ?? ''
  return name.slice(0, 128) || 'unknown'
}
