import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { acceptLimits, resultRef } from '../repository/accept.js'
import { runCommand } from '../sandbox/run-command.js'
import { collectScript } from '../sandbox/scripts.js'
import { TaskError } from '../task-error.js'
import { branchOf, type Step } from './step.js'

/** Commits what the agent left uncommitted, takes the commits out as a bundle and checks them outside. */
export const collectStep: Step = async (context) => {
  const { task, signal, taskDirectory } = context
  const uid = task.metadata.uid
  const baseCommit = task.status?.baseCommit
  if (!baseCommit) throw new TaskError('InternalError', 'the base commit was not recorded')
  const { daemon } = await context.openSandbox()
  const workspace = await context.findWorkspace()
  const bundle = `${workspace.scratch}/out.bundle`
  const result = await runCommand(
    daemon,
    `${uid}.collect`,
    {
      argv: ['/bin/sh', '-c', collectScript],
      env: {
        REPO: workspace.repository,
        BASE_COMMIT: baseCommit,
        RESULT_REF: resultRef,
        BUNDLE: bundle,
        MESSAGE: commitMessage(task.spec.prompt, task.metadata.name),
      },
    },
    { signal, isRepeatable: true, timeoutMs: 10 * 60_000, timeoutCode: 'ResultFailed' },
  )
  if (result.exit.exit_code !== 0) {
    const full = /No space left on device/i.test(result.tail)
    throw new TaskError(full ? 'DiskFull' : 'ResultFailed', `the work could not be committed: ${result.tail}`)
  }
  const commit = /^commit=([0-9a-f]{40,64})$/m.exec(result.stdout)?.[1]
  if (!commit) throw new TaskError('ResultRejected', 'the sandbox named no commit')
  if (/^changed=no$/m.test(result.stdout)) {
    return {
      condition: 'ResultCollected',
      reason: 'NoChanges',
      message: 'nothing changed',
      status: { outcome: 'no_changes' },
      events: [{ type: 'stage', stage: 'result', state: 'finished', detail: 'no changes' }],
    }
  }
  const bundlePath = join(taskDirectory, 'out.bundle')
  await pipeline(
    Readable.from(bounded(daemon.readFileStream(bundle, { signal }), acceptLimits.bundleBytes)),
    createWriteStream(bundlePath, { mode: 0o600 }),
    { signal },
  ).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOSPC')
      throw new TaskError('DiskFull', 'the disk is full: the result could not be stored', { cause: error })
    throw error
  })
  const accepted = await context.repository.accept({
    url: task.spec.repository.url,
    taskDirectory,
    bundlePath,
    baseCommit,
    claimedCommit: commit,
    signal,
  })
  const { filesChanged, insertions, deletions } = accepted.diffStat
  return {
    condition: 'ResultCollected',
    reason: 'Accepted',
    message: `commit ${accepted.commit.slice(0, 12)}`,
    status: { outcome: 'changes', commit: accepted.commit, diffStat: accepted.diffStat },
    events: [
      {
        type: 'stage',
        stage: 'result',
        state: 'finished',
        detail: `${accepted.commit.slice(0, 12)}: ${filesChanged} files changed, +${insertions} -${deletions}`,
      },
    ],
  }
}

/** Pushes outside the sandbox, with the user's credentials. */
export const pushStep: Step = async (context) => {
  const { task } = context
  const commit = task.status?.commit
  if (!commit) throw new TaskError('InternalError', 'the result was not recorded')
  const branch = branchOf(task)
  await context.repository.publish({
    url: task.spec.repository.url,
    taskDirectory: context.taskDirectory,
    commit,
    branch,
    signal: context.signal,
  })
  return {
    condition: 'Pushed',
    reason: 'Pushed',
    message: `${commit.slice(0, 12)} is on ${branch}`,
    status: { pushed: true, branch },
    events: [{ type: 'stage', stage: 'push', state: 'finished', detail: `${commit.slice(0, 12)} is on ${branch}` }],
  }
}

/** A subject from the prompt's first line, and a trailer that leads back to the task. */
export function commitMessage(prompt: string, taskName: string): string {
  const first = prompt.trim().split('\n', 1)[0]?.trim() ?? ''
  const subject = first.length > 72 ? `${first.slice(0, 69).trimEnd()}...` : first || 'Work of a coding agent'
  return `${subject}\n\nCorral-Task: ${taskName}\n`
}

async function* bounded(chunks: AsyncIterable<Uint8Array>, limitBytes: number): AsyncIterable<Uint8Array> {
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > limitBytes) throw new TaskError('ResultTooLarge', `the result is larger than ${limitBytes} bytes`)
    yield chunk
  }
}
