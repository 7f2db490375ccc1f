import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { DaemonClient } from '@corral/protocol'
import { isInjectablePath } from '@corral/protocol'
import type { AgentTaskFile } from '@corral/resources'
import { runCommand } from '../sandbox/run-command.js'
import { checkoutScript, excludeScript } from '../sandbox/scripts.js'
import type { Workspace } from '../sandbox/workspace.js'
import { TaskError } from '../task-error.js'
import { author, branchOf, type Step, type StepContext } from './step.js'

/**
 * Brings the repository in: fetched outside with the user's credentials, carried in as a bundle, cloned from it on a new
 * branch; then the request's files are written. A marker in the sandbox makes a repeat do nothing.
 */
export const repositoryStep: Step = async (context) => {
  const { task, signal } = context
  const prepared = await context.repository.prepare({
    url: task.spec.repository.url,
    ...(task.spec.baseBranch ? { baseBranch: task.spec.baseBranch } : {}),
    ...(task.spec.newBranch ? { newBranch: task.spec.newBranch } : {}),
    ...(task.status?.baseCommit ? { baseCommit: task.status.baseCommit } : {}),
    taskDirectory: context.taskDirectory,
    signal,
  })
  const { daemon } = await context.openSandbox()
  const workspace = await context.findWorkspace()
  const bundle = `${workspace.scratch}/in.bundle`
  const marker = `${workspace.scratch}/checked-out-${task.metadata.uid}`
  if (!(await daemon.statFile(marker, { signal }))) {
    await daemon.writeFile(bundle, createReadStream(prepared.bundlePath), { mkdirs: true, signal })
    const result = await runCommand(
      daemon,
      `${task.metadata.uid}.checkout`,
      {
        argv: ['/bin/sh', '-c', checkoutScript],
        env: {
          BUNDLE: bundle,
          BASE_REF: `refs/corral/base/${prepared.commit}`,
          BASE_BRANCH: prepared.branch,
          NEW_BRANCH: branchOf(task),
          REPO: workspace.repository,
          MARKER: marker,
          AUTHOR_NAME: author.name,
          AUTHOR_EMAIL: author.email,
        },
      },
      { signal, isRepeatable: true, timeoutMs: 10 * 60_000, timeoutCode: 'CloneFailed' },
    )
    if (result.exit.exit_code !== 0) throw checkoutFailure(result.tail)
  }
  await injectFiles(daemon, workspace, task.spec.files ?? [], context)
  const { size } = await stat(prepared.bundlePath)
  return {
    condition: 'RepositoryReady',
    reason: 'CheckedOut',
    message: `${prepared.branch} at ${prepared.commit.slice(0, 12)}`,
    status: { baseBranch: prepared.branch, baseCommit: prepared.commit, branch: branchOf(task) },
    events: [
      {
        type: 'stage',
        stage: 'repository',
        state: 'finished',
        detail: `${prepared.branch} at ${prepared.commit.slice(0, 12)}, ${size} bytes as a bundle, on branch ${branchOf(task)}`,
      },
    ],
  }
}

function checkoutFailure(tail: string): TaskError {
  const full = /No space left on device|Disk quota exceeded/i.test(tail)
  return new TaskError(full ? 'DiskFull' : 'CloneFailed', `the clone inside the sandbox failed: ${tail}`)
}

async function injectFiles(
  daemon: DaemonClient,
  workspace: Workspace,
  files: readonly AgentTaskFile[],
  { task, signal }: StepContext,
): Promise<void> {
  if (files.length === 0) return
  for (const file of files) {
    if (!isInjectablePath(file.path)) throw new TaskError('FileInjectionFailed', `"${file.path}" leaves the repository`)
    const content = file.encoding === 'base64' ? Buffer.from(file.content, 'base64') : file.content
    const mode = (file.mode ?? 0o644).toString(8).padStart(4, '0')
    try {
      await daemon.writeFile(`${workspace.repository}/${file.path}`, content, { mode, mkdirs: true, signal })
    } catch (error) {
      if (signal.aborted) throw error
      throw new TaskError('FileInjectionFailed', `"${file.path}" could not be written: ${(error as Error).message}`, {
        cause: error,
      })
    }
  }
  // New files are context for the agent, not work of its own: they stay out of the commit.
  const result = await runCommand(
    daemon,
    `${task.metadata.uid}.exclude`,
    {
      argv: ['/bin/sh', '-c', excludeScript],
      env: { REPO: workspace.repository, EXCLUDED: files.map((file) => file.path).join('\n') },
    },
    { signal, isRepeatable: true, timeoutMs: 60_000 },
  )
  if (result.exit.exit_code !== 0) throw new TaskError('FileInjectionFailed', result.tail)
}
