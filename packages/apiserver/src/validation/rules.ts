import { dns1123LabelError, dns1123SubdomainError, labelValueError, qualifiedNameError } from '@corral/resources'
import { type FieldError, invalidValue, notSupported } from '../errors/api-error.js'
import { equalJson, isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { parseAddress } from './addresses.js'

/** The objects of a list, or of nothing. */
export const objectsIn = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isJsonObject) : [])

export const objectOf = (value: unknown): JsonObject => (isJsonObject(value) ? value : {})

/** Errors of the parts that a write changes: what was stored before a rule was known stays editable. */
export function errorsOfChange(
  next: JsonObject,
  old: JsonObject | undefined,
  fields: readonly string[],
  check: () => FieldError[],
): FieldError[] {
  if (old && fields.every((field) => equalJson(next[field] ?? null, old[field] ?? null))) return []
  return check()
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null || value === ''

export const oneOf = (field: string, value: unknown, allowed: readonly string[]): FieldError[] =>
  isAbsent(value) || allowed.includes(String(value)) ? [] : [notSupported(field, value, allowed)]

const named = (rule: (text: string) => string | undefined) => (field: string, value: unknown) => {
  const problem = isAbsent(value) ? undefined : rule(String(value))
  return problem ? [invalidValue(field, value, problem)] : []
}

export const label: (field: string, value: unknown) => FieldError[] = named(dns1123LabelError)
export const subdomain: (field: string, value: unknown) => FieldError[] = named(dns1123SubdomainError)

export function between(field: string, value: unknown, least: number, most: number): FieldError[] {
  if (value === undefined || value === null) return []
  if (typeof value === 'number' && value >= least && value <= most) return []
  return [invalidValue(field, value, `must be between ${least} and ${most}, inclusive`)]
}

export const nonNegative = (field: string, value: unknown): FieldError[] =>
  typeof value === 'number' && value < 0 ? [invalidValue(field, value, 'must be greater than or equal to 0')] : []

export const portNumber = (field: string, value: unknown): FieldError[] => between(field, value ?? 0, 1, 65_535)

/** A number or the name of a port. */
export const portOrName = (field: string, value: unknown): FieldError[] =>
  typeof value === 'string' ? portName(field, value) : portNumber(field, value)

export function portName(field: string, value: string): FieldError[] {
  const problems: string[] = []
  if (value.length > 15) problems.push('must be no more than 15 characters')
  if (!/^[-a-z0-9]+$/.test(value))
    problems.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  if (!/[a-z]/.test(value)) problems.push('must contain at least one letter (a-z)')
  if (value.includes('--')) problems.push('must not contain consecutive hyphens')
  if (/^-|-$/.test(value)) problems.push('must not begin or end with a hyphen')
  return problems.map((problem) => invalidValue(field, value, problem))
}

/** Keys and values of labels, all reported under one field. */
export function labels(field: string, value: unknown): FieldError[] {
  return Object.entries(objectOf(value)).flatMap(([key, item]) => {
    const [keyProblem, valueProblem] = [qualifiedNameError(key), labelValueError(String(item))]
    return [
      ...(keyProblem ? [invalidValue(field, key, keyProblem)] : []),
      ...(valueProblem ? [invalidValue(field, item, valueProblem)] : []),
    ]
  })
}

export const CIDR_TEXT = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'
const IP_TEXT = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'

export const ipAddress = (field: string, value: unknown): FieldError[] =>
  ipFamily(value) === 0 ? [invalidValue(field, value ?? '', IP_TEXT)] : []

/** 4, 6, or 0 for what is no address. */
export const ipFamily = (ip: unknown): number => {
  const address = parseAddress(ip)
  return address ? (address.bytes.length === 4 ? 4 : 6) : 0
}

export const duplicate = (field: string, value: unknown): FieldError => ({
  reason: 'FieldValueDuplicate',
  field,
  message: `Duplicate value: ${JSON.stringify(value)}`,
})
