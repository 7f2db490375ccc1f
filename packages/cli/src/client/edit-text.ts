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
export function editText(
  name: string,
  text: string,
  env: NodeJS.ProcessEnv = process.env,
  isTerminal: boolean = process.stdin.isTTY === true && process.stdout.isTTY === true,
): EditedText {
  const wanted = env.VISUAL || env.EDITOR
  // An editor that was named may be a script; vi without a terminal fills the output with its screen.
  if (!wanted && !isTerminal)
    throw new CliError('there is no terminal for an editor, and EDITOR names none that needs no terminal', {
      hint: 'Change settings with --set NAME=VALUE, or give all of them with --file.',
      exitCode: 2,
    })
  const editor = wanted || 'vi'
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
