const namePart = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const labelValue = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/

const nameRule =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const prefixRule =
  "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
const keyRule =
  "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
const valueRule =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

/** What is wrong with a label or annotation key, in the API server's own words; empty when nothing is. */
export function qualifiedNameProblems(key: string): string[] {
  const parts = key.split('/')
  if (parts.length > 2) return [keyRule]
  const problems: string[] = []
  const [prefix, name = ''] = parts.length === 2 ? parts : [undefined, parts[0]]
  if (prefix === '') problems.push('prefix part must be non-empty')
  else if (prefix !== undefined) {
    if (prefix.length > 253) problems.push('prefix part must be no more than 253 bytes')
    if (!subdomain.test(prefix)) problems.push(prefixRule)
  }
  if (name === '') problems.push('name part must be non-empty')
  else if (name.length > 63) problems.push('name part must be no more than 63 bytes')
  if (!namePart.test(name)) problems.push(nameRule)
  return problems
}

/** The same for a label's value. */
export function labelValueProblems(value: string): string[] {
  const problems: string[] = []
  if (value.length > 63) problems.push('must be no more than 63 bytes')
  if (!labelValue.test(value)) problems.push(valueRule)
  return problems
}
