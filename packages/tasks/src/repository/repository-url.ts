import { isAbsolute } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TaskError } from '../task-error.js'

export type RepositoryLocation =
  /** A directory given by path: the branch is fetched into it, its work tree and HEAD stay untouched. */
  | { kind: 'local'; url: string; path: string }
  | { kind: 'remote'; url: string; transport: 'file' | 'http' | 'https' | 'ssh' }

/** What a `repo` value means. Throws `TaskError` with code `Invalid` that names the accepted forms. */
export function parseRepositoryUrl(value: string): RepositoryLocation {
  const url = value.trim()
  if (url === '' || url.includes('\0') || url.startsWith('-')) throw invalid(value)
  if (isAbsolute(url)) return { kind: 'local', url, path: url }
  if (/^[\w.-]+@[\w.-]+:[^/].*$/.test(url)) return { kind: 'remote', url, transport: 'ssh' }
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch {
    throw invalid(value)
  }
  switch (parsed.protocol) {
    case 'file:':
      if (parsed.host !== '' && parsed.host !== 'localhost') throw invalid(value)
      return { kind: 'remote', url: `file://${fileURLToPath(parsed)}`, transport: 'file' }
    case 'https:':
      return { kind: 'remote', url, transport: 'https' }
    case 'http:':
      return { kind: 'remote', url, transport: 'http' }
    case 'ssh:':
      return { kind: 'remote', url, transport: 'ssh' }
    default:
      throw invalid(value)
  }
}

function invalid(value: string): TaskError {
  return new TaskError('Invalid', `"${value.slice(0, 200)}" is not a repository Corral can read`, {
    hint: 'Give an absolute path, file:///path, https://host/owner/name.git or ssh://git@host/owner/name.git.',
  })
}
