import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CliError } from '../cli-error.js'

export interface EditedText {
  text: string
  /** The file it is in, for a message about what could not be taken. */
  path: string
  remove(): void
}

/** Lets the user change a text with their editor. The file stays until `remove`, so that no work is lost. */
export function editText(name: string, text: string, env: NodeJS.ProcessEnv = process.env): EditedText {
  const editor = env.VISUAL || env.EDITOR || 'vi'
  const directory = mkdtempSync(join(tmpdir(), 'corral-edit-'))
  const path = join(directory, name)
  writeFileSync(path, text, { mode: 0o600 })
  const remove = (): void => rmSync(directory, { recursive: true, force: true })
  // With a shell, as git does: the variable may hold arguments.
  const { status, error } = spawnSync('/bin/sh', ['-c', `${editor} "$@"`, editor, path], { stdio: 'inherit' })
  if (error || status !== 0) {
    remove()
    throw new CliError(`the editor "${editor}" ended with ${error?.message ?? status}`, {
      hint: 'Set EDITOR to your editor, or change settings with --set NAME=VALUE.',
      exitCode: 2,
    })
  }
  return { text: readFileSync(path, 'utf8'), path, remove }
}
