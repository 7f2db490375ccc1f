import { basicAuthorization } from './registry-url.js'

/** The Authorization header that a netrc file holds for a host: go and pip take their credentials from there. */
export function netrcAuthorization(netrc: string | undefined, host: string): string | undefined {
  const words = (netrc ?? '').split(/\s+/).filter(Boolean)
  let entry: { machine: string; login: string; password: string } | undefined
  const entries: (typeof entry & object)[] = []
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at]
    if (word === 'machine' || word === 'default') {
      entry = { machine: word === 'machine' ? (words[++at] ?? '') : '*', login: '', password: '' }
      entries.push(entry)
    } else if (entry && (word === 'login' || word === 'password')) entry[word] = words[++at] ?? ''
  }
  const match = entries.find(({ machine }) => machine === host) ?? entries.find(({ machine }) => machine === '*')
  return match && basicAuthorization(match.login, match.password)
}
