import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { branchNameProblem, type TaskView } from '@corral/protocol'
import { CliError } from '../cli-error.js'
import { terminalText } from '../output/terminal-text.js'
import { findUncommitted, plainEnvironment, topOf } from './work-tree.js'

const run = promisify(execFile)
const limits = { timeout: 10 * 60_000, maxBuffer: 64 * 1024 * 1024, encoding: 'utf8' as const }

/** The work tree a result is taken into: the one named, else the one this is called in, else the task's own. */
export function workTreeFor(task: Pick<TaskView, 'repo'>, given: string | undefined, cwd: string): string {
  const candidates = given === undefined ? [cwd, task.repo] : [resolve(cwd, given)]
  for (const candidate of candidates) {
    const top = topOf(candidate)
    if (candidate.startsWith('/') && existsSync(`${top}/.git`)) return top
  }
  throw new CliError(`${candidates[0]} is not inside a git work tree`, {
    exitCode: 2,
    hint: 'Change into a clone of the repository, or name one with --work-tree DIR.',
  })
}

/** Refuses a work tree with changes of the user's own, which would be mixed with the task's. */
export async function refuseDirty(top: string, command: string): Promise<void> {
  const found = await findUncommitted(top)
  const count = (found?.changed ?? 0) + (found?.untracked ?? 0)
  if (count === 0) return
  throw new CliError(`${top} has ${count === 1 ? '1 file that is' : `${count} files that are`} not committed`, {
    exitCode: 1,
    hint: `Commit or stash them (\`git stash -u\`), or go ahead all the same with \`${command} --allow-dirty\`.`,
  })
}

/** Puts a patch into the work tree; one that does not fit changes nothing, with `merge` it leaves conflict markers. */
export async function applyPatch(
  top: string,
  patch: () => AsyncIterable<Uint8Array>,
  { merge, id }: { merge: boolean; id: string },
): Promise<{ conflicts: boolean }> {
  const options = ['apply', '--whitespace=nowarn', ...(merge ? ['--3way'] : [])]
  if (!merge) {
    const checked = await feed(top, [...options, '--check'], patch())
    if (checked.code !== 0)
      throw new CliError(`the change of ${id} does not fit into ${top}: ${reasonIn(checked.stderr)}`, {
        exitCode: 1,
        hint: `Nothing was changed. Merge it with \`corral task apply ${id} --3way\`, or look at it with \`corral task checkout ${id}\`.`,
      })
  }
  const applied = await feed(top, options, patch())
  if (applied.code === 0) return { conflicts: false }
  if (merge && /with conflicts/.test(applied.stderr)) return { conflicts: true }
  throw new CliError(`the change of ${id} could not be applied: ${reasonIn(applied.stderr)}`, {
    exitCode: 1,
    hint: `Nothing was changed. Look at it with \`corral task diff ${id}\`.`,
  })
}

/** What git says is read here, so it says it in English. */
const environment = (): NodeJS.ProcessEnv => plainEnvironment({ LC_ALL: 'C' })

/**
 * Hooks may lie in the work tree, as husky has them: from the checkout on they are the agent's. So git runs none here:
 * looking at a branch must not run what the agent wrote outside of its sandbox.
 */
const withoutHooks = ['-c', 'core.hooksPath=/dev/null']

/** Makes the task's branch the one that is checked out; fetches it where it is not here yet. Runs no hooks. */
export async function checkOutBranch(
  top: string,
  task: Pick<TaskView, 'id' | 'repo' | 'branch' | 'commit'>,
  localName: string,
): Promise<{ fetched: boolean }> {
  const { id, repo, branch = '', commit = '' } = task
  for (const name of [branch, localName]) {
    const problem = branchNameProblem(name)
    if (problem) throw new CliError(`"${name}" ${problem}`, { exitCode: 2 })
  }
  const stands = await git(top, ['rev-parse', '--verify', '--quiet', `refs/heads/${localName}`]).catch(() => undefined)
  if (stands !== undefined && stands !== commit)
    await git(top, ['merge-base', '--is-ancestor', commit, stands]).catch(() => {
      throw new CliError(`${top} has a branch "${localName}" that does not have the commit of ${id}`, {
        exitCode: 1,
        hint: `Give the work another name here: \`corral task checkout ${id} --branch NAME\`.`,
      })
    })
  const fetched = stands === undefined
  if (fetched)
    await git(top, ['fetch', '--no-tags', repo, `refs/heads/${branch}:refs/heads/${localName}`]).catch(failed('fetch'))
  // By itself git puts a file of the branch in the place of one that is ignored here, such as the user's own `.env`.
  await git(top, ['checkout', '--no-overwrite-ignore', localName, '--']).catch(failed('checkout'))
  return { fetched }
}

async function git(top: string, args: string[]): Promise<string> {
  return (await run('git', [...withoutHooks, ...args], { cwd: top, env: environment(), ...limits })).stdout.trim()
}

const failed = (what: string) => (cause: { stderr?: string }) => {
  const { stderr = String(cause) } = cause
  const files = listedFiles(stderr)
  if (!files) throw new CliError(`git ${what} failed: ${reasonIn(stderr)}`, { exitCode: 1, cause })
  throw new CliError(`git ${what} would overwrite your changes: ${files}`, {
    exitCode: 1,
    hint: 'Nothing was changed. Commit, stash (`git stash -u`) or move them, then run it again.',
    cause,
  })
}

/** The files git names in the way it lists what it would overwrite: a line each, after a tab, the reason around them. */
function listedFiles(stderr: string): string | undefined {
  const files = stderr.split('\n').filter((line) => line.startsWith('\t'))
  if (files.length === 0) return undefined
  const shown = files.slice(0, 3).map((line) => terminalText(line.trim()))
  return `${shown.join(', ')}${files.length > shown.length ? ` and ${files.length - shown.length} more` : ''}`
}

async function feed(
  cwd: string,
  args: string[],
  input: AsyncIterable<Uint8Array>,
): Promise<{ code: number; stderr: string }> {
  const child = spawn('git', args, { cwd, env: environment(), stdio: ['pipe', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-16_384)
  })
  const ended = new Promise<number>((onEnd, onError) => {
    child.once('error', onError)
    child.once('close', (code) => onEnd(code ?? 1))
  })
  await pipeline(Readable.from(input), child.stdin).catch((error: NodeJS.ErrnoException) => {
    // git says why it reads no further.
    if (error.code !== 'EPIPE') throw error
  })
  return { code: await ended, stderr }
}

/** What git gives as its reason, with the files it names below; what it says after that is advice. */
function reasonIn(stderr: string): string {
  const lines = stderr.trim().split('\n')
  const at = lines.findLastIndex((line) => /^(error|fatal): /.test(line))
  if (at < 0) return lines.at(-1) ?? stderr
  const after = lines.slice(at + 1)
  const end = after.findIndex((line) => !line.startsWith('\t'))
  const files = after.slice(0, end < 0 ? undefined : end).map((line) => line.trim())
  return [lines[at]?.replace(/^(error|fatal): /, ''), files.join(', ')].filter((part) => part !== '').join(' ')
}
