import { createWriteStream, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Artifact, ChangedFiles, TasksClient, TaskView } from '@corral/protocol'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { requirePlatform } from '../client/find-platform.js'
import { applyPatch, checkOutBranch, refuseDirty, workTreeFor } from '../client/take-home.js'
import { tasksClient } from '../client/tasks.js'
import { shellQuote } from '../output/shell-quote.js'
import { table } from '../output/table.js'
import { terminalText } from '../output/terminal-text.js'
import { type CommonOptions, examples, print, withPlatform } from './common.js'

interface TakeOptions extends CommonOptions {
  workTree?: string
  allowDirty?: boolean
}

/** `corral task apply`, `checkout` and `artifacts`: the way of a result home. */
export function addTaskTake(task: Command): void {
  withWorkTree(task.command('apply').argument('<id>'))
    .summary('put the change into your work tree, uncommitted')
    .description(
      `Applies the change of a task to the work tree you are in, as edits that are not committed. The branch that is checked
out stays. A work tree with changes of your own is refused, and so is a change that does not fit: then nothing is touched.`,
    )
    .option('--3way', 'merge a change that does not fit, with conflict markers where both sides changed a line')
    .addHelpText('after', examples('corral task apply ID', 'corral task apply ID --3way', 'git diff   # what it did'))
    .action(apply)

  withWorkTree(task.command('checkout').argument('<id>'))
    .summary('check the branch of a task out')
    .description(
      `Switches the work tree you are in to the branch of a task, and fetches it first where the repository is elsewhere.
Runs no hooks: those in the work tree would be the agent's.`,
    )
    .option('--branch <name>', 'call it NAME here')
    .addHelpText('after', examples('corral task checkout ID', 'git switch -   # back to where you were'))
    .action(checkout)

  withPlatform(task.command('artifacts').argument('<id>'))
    .summary('files kept with a task')
    .description(
      'Lists the files a task was asked to keep (`--artifact` of `corral run`) and what the platform kept of its work.',
    )
    .option('--download <dir>', 'write them into this directory, which is made where it is missing')
    .addHelpText('after', examples('corral task artifacts ID', 'corral task artifacts ID --download out'))
    .action(artifacts)
}

function withWorkTree(command: Command): Command {
  return withPlatform(command)
    .option('--work-tree <dir>', 'the work tree to use (default: the one you are in, else that of the task)')
    .option('--allow-dirty', 'also into a work tree with changes that are not committed')
}

async function apply(id: string, options: TakeOptions & { '3way'?: boolean }): Promise<void> {
  const client = tasksClient(await requirePlatform(options))
  const task = await client.get(id)
  const changed = await client.files(id)
  refuseNothing(task, changed)
  const top = workTreeFor(task, options.workTree, process.cwd())
  if (!options.allowDirty) await refuseDirty(top, `corral task apply ${id}`)
  const { conflicts } = await applyPatch(top, () => client.diff(id), { merge: options['3way'] === true, id })
  const result = { id, work_tree: top, conflicts, files: changed.files.map(({ path, status }) => ({ path, status })) }
  print(result, options, () => appliedWords(top, changed, conflicts, options['3way'] === true))
  if (conflicts) process.exitCode = 1
}

function refuseNothing(task: TaskView, { files, truncated }: ChangedFiles): void {
  if (files.length > 0) return
  if (truncated)
    throw new CliError(`the change of ${task.id} is too large to be kept as a patch`, {
      exitCode: 1,
      hint: `Take its branch: \`corral task checkout ${task.id}\`.`,
    })
  throw new CliError(`task ${task.id} has no change to take (${task.status})`, {
    exitCode: 1,
    hint: task.times?.finished_at
      ? `See what it did with \`corral task logs ${task.id}\`.`
      : `Wait for it with \`corral task watch ${task.id}\`.`,
  })
}

function appliedWords(top: string, { files }: ChangedFiles, conflicts: boolean, isStaged: boolean): string {
  const count = `${files.length} file${files.length === 1 ? '' : 's'}`
  const git = `git -C ${shellQuote(top)}`
  if (conflicts)
    return `${count} merged into ${top}, with conflicts\nnext:\n  ${git} status   # files that need a decision, then \`git add\` them`
  return [
    `${count} changed in ${top}, not committed`,
    'next:',
    `  ${git} diff${isStaged ? ' --staged' : ''}   # look at it`,
    `  ${git} add -A && ${git} commit   # keep it`,
  ].join('\n')
}

async function checkout(id: string, options: TakeOptions & { branch?: string }): Promise<void> {
  const task = await tasksClient(await requirePlatform(options)).get(id)
  if (!task.pushed || !task.branch)
    throw new CliError(`task ${id} has no branch (${task.status})`, {
      exitCode: 1,
      hint: task.commit
        ? `Its work is kept: take it with \`corral task apply ${id}\`.`
        : `See what it did with \`corral task watch ${id}\`.`,
    })
  const top = workTreeFor(task, options.workTree, process.cwd())
  if (!options.allowDirty) await refuseDirty(top, `corral task checkout ${id}`)
  const branch = options.branch ?? task.branch
  const { fetched } = await checkOutBranch(top, task, branch)
  print(
    { id, work_tree: top, branch, commit: task.commit, fetched },
    options,
    () => `${top} is on ${branch}\nnext:\n  git -C ${shellQuote(top)} switch -   # back to where you were`,
  )
}

async function artifacts(id: string, options: CommonOptions & { download?: string }): Promise<void> {
  const client = tasksClient(await requirePlatform(options))
  const { artifacts: kept } = await client.artifacts(id)
  if (options.download === undefined) {
    print({ artifacts: kept }, options, () => (kept.length === 0 ? 'nothing is kept' : artifactTable(kept)))
    return
  }
  const directory = resolve(options.download)
  mkdirSync(directory, { recursive: true })
  for (const { name } of kept) await download(client, id, name, directory)
  print(
    { directory, artifacts: kept },
    options,
    () => `${kept.length} file${kept.length === 1 ? '' : 's'} in ${directory}`,
  )
}

async function download(client: TasksClient, id: string, name: string, directory: string): Promise<void> {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name))
    throw new CliError(`"${terminalText(name)}" is no name of a kept file`, { exitCode: 3 })
  await pipeline(Readable.from(client.artifact(id, name)), createWriteStream(join(directory, name)))
}

function artifactTable(kept: readonly Artifact[]): string {
  return table(
    ['NAME', 'BYTES', 'PATH'],
    kept.map(({ name, size_bytes, path }) => [name, String(size_bytes), terminalText(path ?? '')]),
  )
}
