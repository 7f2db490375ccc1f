import { type Git, GitError } from './git-process.js'

/** Shorter ones are words such as `git`, which name no user. */
const minSecretLength = 4

/**
 * What the user's configuration puts into addresses (`url.<base>.insteadOf`, `pushInsteadOf`): user names, passwords
 * and queries. They are the user's own way to give git a token, and a server or a helper may repeat them anywhere.
 */
export async function secretsOfRewrites(git: Git, cwd?: string): Promise<string[]> {
  const args = ['config', '--null', '--name-only', '--get-regexp', String.raw`^url\..*\.(push)?insteadof$`]
  // Without such settings git ends with 1; whatever else is wrong with the configuration, the first error tells.
  const { stdout } = await git(args, { ...(cwd ? { cwd } : {}), timeoutMs: 10_000 }).catch(() => ({ stdout: '' }))
  const bases = stdout.split('\0').map((key) => key.replace(/^url\./, '').replace(/\.[a-z]+$/i, ''))
  return bases.flatMap(secretsIn)
}

function secretsIn(base: string): string[] {
  const authority = /^[a-z][a-z0-9+.-]*:\/\/([^/]*)@/i.exec(base)?.[1] ?? /^([^/@]*:[^/@]*)@/.exec(base)?.[1] ?? ''
  const query = /\?(.*)$/.exec(base)?.[1] ?? ''
  const parts = [...authority.split(':'), ...query.split('&').map((pair) => pair.slice(pair.indexOf('=') + 1))]
  return [...new Set(parts.flatMap((part) => [part, decoded(part)]))].filter((part) => part.length >= minSecretLength)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The same failure with every occurrence of a secret taken out of its words. */
export function withoutSecrets(error: GitError, secrets: readonly string[]): GitError {
  if (secrets.length === 0) return error
  // Longest first: one secret may be the beginning of another.
  const ordered = secrets.toSorted((a, b) => b.length - a.length)
  const clean = (text: string) => ordered.reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text)
  return new GitError(error.args.map(clean), error.exitCode, clean(error.stderr), { cause: error.cause })
}
