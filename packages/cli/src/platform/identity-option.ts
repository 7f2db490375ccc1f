import { type GitIdentity, parseGitIdentity } from '@corral/protocol'
import { CliError } from '../cli-error.js'

/** Whom `Jane Doe <jane@example.com>` names, given with an option. */
export function identityFrom(option: string, text: string): GitIdentity {
  const identity = parseGitIdentity(text)
  if (identity) return identity
  throw new CliError(`${option}: "${text}" is not of the form "Jane Doe <jane@example.com>"`, { exitCode: 2 })
}
