import { isAbsolute } from 'node:path'
import { fileURLToPath } from 'node:url'
import { credentialHint, credentialInUrl } from '@corral/protocol'
import { TaskError } from '../task-error.js'

export type RepositoryLocation =
  /** A directory given by path: the branch is fetched into it, its work tree and HEAD stay untouched. */
  | { kind: 'local'; url: string; path: string }
  | { kind: 'remote'; url: string; transport: 'file' | 'http' | 'https' | 'ssh' }

/**
 * What a `repo` value means. Throws `TaskError` with code `CredentialsInUrl` where it could hold a secret, which the
 * message does not repeat, and with `Invalid`, which names the accepted forms, where it is none at all.
 */
export function parseRepositoryUrl(value: string): RepositoryLocation {
  const url = value.trim()
  if (url === '' || url.includes('\0') || url.startsWith('-')) throw invalid(value)
  const credential = credentialInUrl(url)
  if (credential)
    throw new TaskError('CredentialsInUrl', `repo: the address of the repository carries ${credential}`, {
      hint: credentialHint,
    })
  if (isAbsolute(url)) return { kind: 'local', url, path: url }
  if (/^[\w.][\w.-]*@[\w.][\w.-]*:[^/].*$/.test(url)) return { kind: 'remote', url, transport: 'ssh' }
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch {
    throw invalid(value)
  }
  switch (parsed.protocol) {
    case 'file:':
      if (parsed.host !== '' && parsed.host !== 'localhost') throw invalid(value)
      return { kind: 'remote', url: `file://${pathIn(parsed, value)}`, transport: 'file' }
    case 'https:':
      return { kind: 'remote', url, transport: 'https' }
    case 'http:':
      return { kind: 'remote', url, transport: 'http' }
    case 'ssh:':
      // ssh would take such a host for an option; git refuses it too, but only once the task runs.
      if (parsed.hostname.startsWith('-') || parsed.username.startsWith('-')) throw invalid(value)
      return { kind: 'remote', url, transport: 'ssh' }
    default:
      throw invalid(value)
  }
}

/** A file address may hold what no path can: an encoded slash or NUL, or half an escape. */
function pathIn(parsed: URL, value: string): string {
  try {
    const path = fileURLToPath(parsed)
    if (!path.includes('\0')) return path
  } catch {
    // Refused below like every other address that names nothing.
  }
  throw invalid(value)
}

function invalid(value: string): TaskError {
  // Half an address may still be one with a secret in it: only what certainly holds none is repeated.
  const shown = /^[\w./~+-]*(:\/*[\w./~+-]*)?$/.test(value) ? `"${value.slice(0, 200)}"` : 'repo: this address'
  return new TaskError('Invalid', `${shown} is not a repository Corral can read`, {
    hint: 'Give an absolute path, file:///path, https://host/owner/name.git or ssh://git@host/owner/name.git.',
  })
}

export const isOnServer = (url: string): boolean => parseRepositoryUrl(url).kind === 'remote'
