import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isTaskCause, type TaskView, taskCauses } from '@corral/protocol'
import { pc } from './colors.js'
import { shellQuote } from './shell-quote.js'

/** The option that leads printed commands to the same platform; nothing for the usual one. */
export function dataDirWords(dataDir: string | undefined): string {
  return dataDir === undefined ? '' : ` --data-dir ${shellQuote(dataDir)}`
}

/** What comes after a task: commands to paste, one a line. */
export function nextCommands(
  task: TaskView,
  dataDir: string | undefined,
  hasWorkTree: (repo: string) => boolean = (repo) => existsSync(join(repo, '.git')),
): string[] {
  const at = dataDirWords(dataDir)
  const lines = [...afterBranch(task, at, hasWorkTree), ...afterFailure(task, at)]
  if (lines.length === 0) return []
  const width = Math.max(...lines.map(([command]) => command.length))
  return [pc.dim('next:'), ...lines.map(([command, what]) => `  ${command.padEnd(width)}  ${pc.dim(`# ${what}`)}`)]
}

type Line = readonly [command: string, what: string]

function afterBranch(task: TaskView, at: string, hasWorkTree: (repo: string) => boolean): Line[] {
  const { id, branch, repo } = task
  const diff: Line = [`corral task diff ${id}${at}`, 'the change']
  // Work that was not pushed is kept with the task.
  if (!task.pushed && task.commit)
    return [diff, [`corral task apply ${id}${at}`, 'take it, into the work tree you are in']]
  if (!task.pushed || !branch) return []
  const name = shellQuote(branch)
  const isPath = repo.startsWith('/')
  const git = isPath ? `git -C ${shellQuote(repo)}` : 'git'
  const take: Line[] = !isPath
    ? [[`git fetch ${shellQuote(repo)} ${name} && git checkout FETCH_HEAD`, 'in a clone of it: look around']]
    : hasWorkTree(repo)
      ? [
          [`${git} checkout ${name}`, 'look around'],
          [`${git} merge ${name}`, 'take it'],
        ]
      : []
  return [diff, ...take, [`corral task send ${id} "…"${at}`, 'go on from here']]
}

function afterFailure(task: TaskView, at: string): Line[] {
  const { id, cause, times } = task
  if (!cause) return []
  const isRetryable = isTaskCause(cause.code) && taskCauses[cause.code].retryable
  return [
    ...(times?.running_at ? [[`corral task logs ${id}${at}`, 'what the agent wrote'] as const] : []),
    ...(isRetryable ? [[`corral task retry ${id}${at}`, 'again, from the stage that failed'] as const] : []),
  ]
}
