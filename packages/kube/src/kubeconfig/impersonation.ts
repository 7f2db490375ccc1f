import { type Entry, invalid, isFields, text } from './kubeconfig-file.js'

export type ImpersonationHeaders = Readonly<Record<string, string | string[]>>

/** The headers with which a user asks to act as another; undefined where the entry names none. */
export function impersonationHeaders(user: Entry): ImpersonationHeaders | undefined {
  const name = text(user, 'as')
  const uid = text(user, 'as-uid')
  const groups = user.fields['as-groups'] ?? []
  const extra = user.fields['as-user-extra'] ?? {}
  const problem = (what: string) => invalid(user.file, `user "${user.name}": ${what}`)
  if (!isTexts(groups)) throw problem('as-groups is not a list of strings')
  if (!isFields(extra)) throw problem('as-user-extra is not a mapping')
  const headers: Record<string, string | string[]> = {}
  if (uid !== undefined) headers['impersonate-uid'] = uid
  if (groups.length > 0) headers['impersonate-group'] = groups
  for (const [key, values] of Object.entries(extra)) {
    if (!isTexts(values)) throw problem(`as-user-extra "${key}" is not a list of strings`)
    headers[`impersonate-extra-${encodeURIComponent(key).toLowerCase()}`] = values
  }
  if (name !== undefined) return { 'impersonate-user': name, ...headers }
  if (Object.keys(headers).length > 0) throw problem('as-uid, as-groups and as-user-extra need "as"')
  return undefined
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')
