import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where the stand-in refuses every key. */
export const lockedSshHost = 'locked.example'

export interface SshStandIn {
  /** A PATH on which `ssh` is the stand-in. */
  readonly path: string
  /** The arguments of every call so far, one line each. */
  calls(): string[]
}

/**
 * An `ssh` that runs the remote command on this machine instead of another one: git speaks to a real `git-upload-pack`
 * and `git-receive-pack` through it, with the arguments it would give the real client. Relative paths are below `home`.
 */
export function sshStandIn(directory: string, home: string): SshStandIn {
  const log = join(directory, 'calls')
  const program = join(directory, 'ssh')
  mkdirSync(directory, { recursive: true })
  writeFileSync(
    program,
    [
      '#!/bin/sh',
      `echo "$*" >> '${log}'`,
      `case "$*" in *${lockedSshHost}*) echo 'git@${lockedSshHost}: Permission denied (publickey).' >&2; exit 255;; esac`,
      'for command; do :; done',
      `cd '${home}' && exec sh -c "$command"`,
      '',
    ].join('\n'),
  )
  chmodSync(program, 0o755)
  return {
    path: `${directory}:${process.env.PATH ?? ''}`,
    calls: () => (existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n') : []),
  }
}
