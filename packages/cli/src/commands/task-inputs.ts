import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { basename, relative, resolve, sep } from 'node:path'
import { type InjectedFile, isInjectablePath } from '@corral/protocol'
import { CliError } from '../cli-error.js'
import { commitUncommitted, findUncommitted, topOf } from '../client/work-tree.js'
import { decodeText, maxInputBytes, readStdin } from './common.js'

/** The prompt of a task: the argument, standard input for `-`, or a file. */
export async function readPrompt(argument: string | undefined, promptFile: string | undefined): Promise<string> {
  if (argument !== undefined && promptFile !== undefined)
    throw new CliError('give the prompt as an argument or with --prompt-file, not both', { exitCode: 2 })
  if (argument === undefined && promptFile === undefined)
    throw new CliError('what shall the agent do?', {
      exitCode: 2,
      hint: 'Give a prompt, `-` to read it from standard input, or --prompt-file FILE.',
    })
  const isStdin = argument === '-' || promptFile === '-'
  const text = isStdin ? await readStdin() : promptFile === undefined ? argument : readText(promptFile, '--prompt-file')
  if (text === undefined || text.trim() === '')
    throw new CliError(`the prompt${isStdin ? ' on standard input' : ''} is empty`, { exitCode: 2 })
  return text
}

function readText(path: string, option: string): string {
  try {
    return decodeText(readInput(path).bytes, `${option} ${path}`)
  } catch (cause) {
    throw cause instanceof CliError ? cause : unreadable(path, option, cause)
  }
}

function readInput(path: string): { bytes: Buffer; isExecutable: boolean } {
  const file = openSync(path, 'r')
  try {
    const pieces: Buffer[] = []
    for (let length = 0; ; ) {
      const piece = Buffer.alloc(64 * 1024)
      const count = readSync(file, piece)
      if (count === 0) return { bytes: Buffer.concat(pieces), isExecutable: (fstatSync(file).mode & 0o100) !== 0 }
      length += count
      if (length > maxInputBytes)
        throw Object.assign(new RangeError(`more than ${maxInputBytes} bytes`), { code: 'EFBIG' })
      pieces.push(piece.subarray(0, count))
    }
  } finally {
    closeSync(file)
  }
}

/**
 * The files of `--file PATH` and `--file PATH:DEST`. Without a destination a file inside the repository keeps its place
 * there, any other one goes to the top under its own name.
 */
export function readFiles(given: readonly string[], repo: string): InjectedFile[] {
  return given.map((text) => {
    const { path, destination } = splitFile(text)
    const target = destination ?? placeIn(repo, path)
    if (!isInjectablePath(target))
      throw new CliError(`--file ${text}: "${target}" is no place inside the repository`, {
        exitCode: 2,
        hint: 'Give a relative path that stays inside it and outside .git, as in --file local.env:config/.env.',
      })
    return { path: target, ...contentOf(path) }
  })
}

/** A colon may be part of a file's name: what exists as it stands is a path. */
function splitFile(text: string): { path: string; destination?: string } {
  const at = text.lastIndexOf(':')
  if (at <= 0 || existsSync(text)) return { path: text }
  return { path: text.slice(0, at), destination: text.slice(at + 1) }
}

function placeIn(repo: string, path: string): string {
  const inside = relative(repo, resolve(path))
  const isInside = inside !== '' && inside !== '..' && !inside.startsWith(`..${sep}`)
  return isInside && isInjectablePath(inside) ? inside : basename(path)
}

function contentOf(path: string): Omit<InjectedFile, 'path'> {
  try {
    const { bytes, isExecutable } = readInput(path)
    const text = bytes.toString('utf8')
    const isText = Buffer.from(text, 'utf8').equals(bytes)
    return {
      content: isText ? text : bytes.toString('base64'),
      ...(isText ? {} : { encoding: 'base64' as const }),
      ...(isExecutable ? { mode: '0755' } : {}),
    }
  } catch (cause) {
    throw unreadable(path, '--file', cause)
  }
}

function unreadable(path: string, option: string, cause: unknown): CliError {
  const { code } = cause as NodeJS.ErrnoException
  const words: Record<string, string> = {
    ENOENT: 'there is no such file',
    EISDIR: 'it is a directory',
    EACCES: 'you may not read it',
    EFBIG: `it is larger than ${maxInputBytes} bytes`,
  }
  return new CliError(`${option} ${path}: ${words[code ?? ''] ?? String(cause)}`, { exitCode: 2, cause })
}

/** What is known of the repository before the platform sees it: its top, and what of it is not committed. */
export async function lookAtRepository(
  repo: string,
  options: { base?: string | undefined; includeUncommitted?: boolean | undefined },
  say: (text: string) => void,
): Promise<{ repo: string; base?: string }> {
  const isPath = repo.startsWith('/') && existsSync(repo)
  if (!isPath) {
    if (options.includeUncommitted)
      throw new CliError('--include-uncommitted goes with a repository on this machine, given by its path', {
        exitCode: 2,
      })
    return { repo }
  }
  const top = topOf(repo)
  if (top !== repo) say(`${repo} is inside the repository ${top}, which is used`)
  const found = await findUncommitted(top)
  const count = (found?.changed ?? 0) + (found?.untracked ?? 0)
  if (count === 0) return { repo: top }
  const files = `${count} file${count === 1 ? '' : 's'}`
  const detail = [
    ...(found?.changed ? [`${found.changed} changed`] : []),
    ...(found?.untracked ? [`${found.untracked} untracked`] : []),
  ].join(', ')
  if (!options.includeUncommitted) {
    say(
      `warning: ${files} not committed (${detail}): the agent works without; take them along with --include-uncommitted`,
    )
    return { repo: top }
  }
  if (options.base)
    throw new CliError('--include-uncommitted starts from what is checked out, so --base cannot be given too', {
      exitCode: 2,
    })
  const { branch, commit } = await commitUncommitted(top)
  say(`${files} not committed (${detail}) taken along as commit ${commit.slice(0, 12)} on branch ${branch}`)
  return { repo: top, base: branch }
}
