/** Name rules of Kubernetes. Each validator answers what is wrong, in Kubernetes' words, or undefined. */

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const LABEL_PATTERN = new RegExp(`^${LABEL}$`)
const SUBDOMAIN_PATTERN = new RegExp(`^${LABEL}(\\.${LABEL})*$`)
const DNS1035 = '[a-z]([-a-z0-9]*[a-z0-9])?'
const DNS1035_PATTERN = new RegExp(`^${DNS1035}$`)
const NAME = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const NAME_PATTERN = new RegExp(`^${NAME}$`)
const LABEL_VALUE_PATTERN = new RegExp(`^(${NAME})?$`)

/** Namespace names, container names, port-forward targets: at most 63 characters, no dots. */
export function dns1123LabelError(name: string): string | undefined {
  if (name.length > 63) return 'must be no more than 63 characters'
  if (LABEL_PATTERN.test(name)) return undefined
  return `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`
}

/** Names of most objects: at most 253 characters. */
export function dns1123SubdomainError(name: string): string | undefined {
  if (name.length > 253) return 'must be no more than 253 characters'
  if (SUBDOMAIN_PATTERN.test(name)) return undefined
  return `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${LABEL}(\\.${LABEL})*')`
}

/** Names of Services: at most 63 characters, the first a letter. */
export function dns1035LabelError(name: string): string | undefined {
  if (name.length > 63) return 'must be no more than 63 characters'
  if (DNS1035_PATTERN.test(name)) return undefined
  return `a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '${DNS1035}')`
}

/** Keys of labels and annotations: an optional DNS prefix and a name of at most 63 characters. */
export function qualifiedNameError(key: string): string | undefined {
  const parts = key.split('/')
  const shape = `must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${NAME}')`
  if (parts.length > 2)
    return `a qualified name ${shape} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`
  const [prefix, name = ''] = parts.length === 2 ? parts : [undefined, parts[0]]
  if (prefix === '') return 'prefix part must be non-empty'
  if (prefix !== undefined) {
    const problem = dns1123SubdomainError(prefix)
    if (problem) return `prefix part ${problem}`
  }
  if (name === '') return 'name part must be non-empty'
  if (name.length > 63) return 'name part must be no more than 63 characters'
  return NAME_PATTERN.test(name) ? undefined : `name part ${shape}`
}

/** Values of labels: at most 63 characters, empty allowed. */
export function labelValueError(value: string): string | undefined {
  if (value.length > 63) return 'must be no more than 63 characters'
  if (LABEL_VALUE_PATTERN.test(value)) return undefined
  return `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(${NAME})?')`
}

export const isDns1123Label = (name: string): boolean => dns1123LabelError(name) === undefined
export const isDns1123Subdomain = (name: string): boolean => dns1123SubdomainError(name) === undefined
export const isDns1035Label = (name: string): boolean => dns1035LabelError(name) === undefined
export const isQualifiedName = (key: string): boolean => qualifiedNameError(key) === undefined
export const isLabelValue = (value: string): boolean => labelValueError(value) === undefined
