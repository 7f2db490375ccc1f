/**
 * Which part of a repository's address could be a secret, undefined where none could. An address is stored with the task
 * and shown to every user who may see it, so a secret has no place in it. A user name of http counts: hosts take tokens
 * there, and nothing tells the two apart.
 */
export function credentialInUrl(value: string): string | undefined {
  const url = value.trim()
  if (url.startsWith('/')) return undefined
  const scheme = /^([a-z][a-z0-9+.-]*):[/\\]/i.exec(url)?.[1]?.toLowerCase()
  if (scheme === undefined) return scpCredential(url)
  // An encoded @ or : means the same to whatever decodes the address.
  const authority = /^[^:]+:[/\\]*([^/\\?#]*)/.exec(url)?.[1] ?? ''
  const user = /^(.*)(?:@|%40)/i.exec(authority)?.[1]
  if (user !== undefined && /:|%3a/i.test(user)) return 'a password'
  if (user !== undefined && scheme !== 'ssh') return 'a user name or token'
  if (user !== undefined && tokenShape.test(user)) return 'a token'
  if (/[?#]/.test(url)) return 'a query or fragment'
  if (scheme !== 'file' && /%3f/i.test(url)) return 'a query or fragment'
  return undefined
}

/** `git@host:path`, which ssh takes a user name from but never a password. */
function scpCredential(url: string): string | undefined {
  const user = /^([^/\\]*)(?:@|%40)/i.exec(url)?.[1]
  if (user === undefined) return undefined
  if (/:|%3a/i.test(user) && !/^[\w.-]+@[\w.-]+:/.test(url)) return 'a password'
  if (tokenShape.test(user)) return 'a token'
  return /[?#]/.test(url) ? 'a query or fragment' : undefined
}

/** Prefixes that hosts give to their tokens so that scanners can tell them. */
const tokenShape = /^(gh[pousr]_|github_pat_|gl[a-z]{2,6}-|ATATT|ATBB|ATCTT|x-token-auth)/

/** The next move after `credentialInUrl` found something. */
export const credentialHint =
  'Leave it out of the address and give it to git on the machine of the platform: a credential helper ' +
  '(`git config --global credential.helper store`, then `git credential approve`), a user name by ' +
  '`git config --global credential.https://HOST.username NAME`, or an ssh key.'

/**
 * A text with what addresses in it could give away taken out: user names, passwords and queries, of URLs in any encoding
 * and of `user:password@host`. For words of other programs that reach people or logs.
 */
export function redactUrls(text: string): string {
  return text
    .replace(/([a-z][a-z0-9+.-]*(?::|%3a)(?:\/\/|%2f%2f))[^\s/'"<>]*(?:@|%40)/gi, '$1')
    .replace(/((?:https?|ssh|git|ftps?)(?::|%3a)(?:\/\/|%2f%2f)[^\s?#'"<>]*?)(?:[?#]|%3f)[^\s'"<>]*/gi, '$1')
    .replace(/(^|[\s'"(])[^\s'"/@:]+:[^\s'"/@]+@(?=[\w.-]+)/g, '$1')
}
