import { dns1123SubdomainError } from '@corral/resources'
import { type FieldError, invalidValue } from '../errors/api-error.js'

const NAME_PART = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
const PREFIX_TEXT = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
const NAME_TEXT =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

/** What is wrong with a name that may have a domain before it. */
export function checkQualifiedName(key: string, field: string): FieldError[] {
  if (NAME_PART.test(key) && key.length <= 63) return []
  return qualifiedNameProblems(key).map((problem) => invalidValue(field, key, problem))
}

function qualifiedNameProblems(key: string): string[] {
  const parts = key.split('/')
  if (parts.length > 2) return [`a qualified name ${NAME_TEXT} ${PREFIX_TEXT}`]
  const [name = '', prefix] = parts.reverse()
  const problems: string[] = []
  if (prefix === '') problems.push('prefix part must be non-empty')
  const prefixProblem = prefix ? dns1123SubdomainError(prefix) : undefined
  if (prefixProblem) problems.push(`prefix part ${prefixProblem}`)
  if (name === '') problems.push('name part must be non-empty')
  if (name.length > 63) problems.push('name part must be no more than 63 characters')
  if (!NAME_PART.test(name)) problems.push(`name part ${NAME_TEXT}`)
  return problems
}
