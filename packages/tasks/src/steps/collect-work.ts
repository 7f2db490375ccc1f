import type { DaemonClient } from '@corral/protocol'
import { type AgentTaskStatus, errorCode, findCondition } from '@corral/resources'
import { agentSummary } from '../commits/agent-summary.js'
import { commitMessage } from '../commits/commit-message.js'
import { identitiesOf } from '../commits/identity.js'
import { isDiskFullText } from '../repository/git-failure.js'
import { quarantineLimits, resultRef } from '../repository/quarantine.js'
import { collectScript, nothingCollected } from '../sandbox/collect-script.js'
import {
  type CollectedWork,
  type CollectRequest,
  collectEnvironment,
  parseCollected,
  scratchFiles,
} from '../sandbox/collected-work.js'
import { lfsFilterScript } from '../sandbox/lfs-filter.js'
import { type CommandResult, runCommand } from '../sandbox/run-command.js'
import { archiveScript } from '../sandbox/scripts.js'
import { TaskError } from '../task-error.js'
import { branchOf } from '../task-state/branch-of.js'
import { ensureBaseBundle } from './base-in-record.js'
import type { StepContext } from './step.js'

/** Directory below the task's scratch in which its result is made. */
export const collectName = 'collect'

/** The artifact that holds a work tree no commit could be made from. */
export const archiveName = 'work-tree.tar'

/** Time for all ways of a run together. */
const timeoutMs = 10 * 60_000

/**
 * Lets the sandbox make bundles of what the agent did: from the agent's repository where that works in the time it has, else
 * from its files and the base, which is sent in once more. Throws `ResultFailed` when no way works.
 */
export async function collectWork(
  context: StepContext,
  baseCommit: string,
  {
    firstTimeoutMs = timeoutMs,
    onStarted,
  }: { firstTimeoutMs?: number | undefined; onStarted?: (() => void) | undefined } = {},
): Promise<CollectedWork> {
  const { task, signal } = context
  const { daemon } = await context.openSandbox()
  const summary = await agentSummary(context.eventLog, task.metadata.uid, signal)
  const request = await collectRequest(context, baseCommit, collectName, summary)
  if (request.lfsFilter) await daemon.writeFile(request.lfsFilter, lfsFilterScript, { mkdirs: true, signal })
  const first = await tryWays(daemon, `${task.metadata.uid}.collect`, request, {
    signal,
    timeoutMs: firstTimeoutMs,
    onStarted,
  })
  if ('commit' in first) return first
  const baseBundle = await bringBase(context, daemon, request)
  const again: CollectRequest = { ...request, ways: [2, 3, 4], baseBundle, failure: first.failure }
  const second = await runWays(daemon, `${task.metadata.uid}.collect-files`, again, { signal, timeoutMs })
  if ('commit' in second) return second
  const [, why = ''] = /^fatal: (.{1,200})$/m.exec(second.failure) ?? []
  throw new TaskError(
    'ResultFailed',
    `neither the agent’s repository nor its files could be made into commits${why ? ` (${why})` : ''}`,
  )
}

/**
 * Lets the sandbox make one commit of the files as they are, after commits of the agent were not accepted. Undefined where
 * that does not work either.
 */
export async function collectFiles(
  context: StepContext,
  baseCommit: string,
  error: TaskError,
): Promise<CollectedWork | undefined> {
  const { task, signal } = context
  const { daemon } = await context.openSandbox()
  const request = await collectRequest(context, baseCommit, collectName)
  const again: CollectRequest = {
    ...request,
    ways: [3, 4],
    baseBundle: await bringBase(context, daemon, request),
    rejected: rejectionOf(error),
  }
  const found = await runWays(daemon, `${task.metadata.uid}.collect-accepted`, again, { signal, timeoutMs })
  return 'commit' in found ? found : undefined
}

/** Files git reads itself, and refuses some contents of. */
const specialFiles = ['.gitmodules', '.gitattributes'] as const

/** What hosts of repositories take at most. */
const hostFileBytes = 100 * 1024 * 1024

/** What of the work cannot be part of a result, by what the check of its commits said. */
export function rejectionOf(error: Error): NonNullable<CollectRequest['rejected']> {
  const { message } = error
  const why = message.slice(0, 300)
  if (errorCode(error) === 'ResultTooLarge') return { why, leaveOut: [], maxFileBytes: hostFileBytes }
  return { why, leaveOut: specialFiles.filter((name) => message.includes(name.slice(1))) }
}

async function bringBase(
  context: StepContext,
  daemon: DaemonClient,
  { place }: Pick<CollectRequest, 'place'>,
): Promise<string> {
  await ensureBaseBundle(context)
  const path = `${place.scratch}/base.bundle`
  await daemon.writeFile(path, context.record.read('bundle-in'), { mkdirs: true, signal: context.signal })
  return path
}

/**
 * What `collectScript` needs to know of this task, for its first way. `workName` is the directory it works in: a
 * checkpoint beside a running agent takes one of its own and leaves everything the agent sees as it is.
 */
export async function collectRequest(
  { task, adapter, repository, findWorkspace }: StepContext,
  baseCommit: string,
  workName: string,
  summary?: string,
): Promise<CollectRequest> {
  const place = await findWorkspace()
  return {
    place,
    workName,
    ways: [1],
    baseCommit,
    branch: branchOf(task),
    resultRef,
    message: commitMessage({
      prompt: task.spec.prompt,
      taskName: task.metadata.name,
      summary,
      coAuthor: adapter.commitsAs,
    }),
    ...identitiesOf(task),
    isEvicted: isEvictedForDisk(task.status),
    ...(task.spec.repository.lfs ? { lfsFilter: scratchFiles.lfsFilter(place.scratch) } : {}),
    shallow: await repository.shallowCommits(task.spec.repository.url),
  }
}

/** Whether the agent was ended because it took too much of the disk; its sandbox is evicted once its work is out. */
export function isEvictedForDisk(status: AgentTaskStatus | undefined): boolean {
  const reason = findCondition(status?.conditions ?? [], 'AgentFinished')?.reason
  return reason === 'DiskFull' || reason === 'DiskLimit'
}

interface WithinTime {
  signal: AbortSignal
  timeoutMs: number
  /** Called once the script runs. */
  onStarted?: (() => void) | undefined
}

/** No way worked; what was said about that. */
interface NothingCollected {
  failure: string
}

/**
 * Runs ways after which others are left: a filter of the agent's configuration may wait for ever, and a run that was killed
 * for that in an earlier process of ours has no answer.
 */
async function tryWays(
  daemon: DaemonClient,
  id: string,
  request: CollectRequest,
  within: WithinTime,
): Promise<CollectedWork | NothingCollected> {
  try {
    return await runWays(daemon, id, request, within)
  } catch (error) {
    if (within.signal.aborted || errorCode(error) !== 'ResultFailed') throw error
    return { failure: `error: ${(error as Error).message}` }
  }
}

async function runWays(
  daemon: DaemonClient,
  id: string,
  request: CollectRequest,
  within: WithinTime,
): Promise<CollectedWork | NothingCollected> {
  const { exit, stdout, tail } = await collectOnDisk(daemon, id, request, within)
  if (exit.exit_code === nothingCollected) return { failure: tail }
  if (exit.exit_code !== 0) throw new TaskError('ResultFailed', `the work could not be committed: ${tail}`)
  const collected = parseCollected(stdout)
  if (!collected) throw new TaskError('ResultRejected', 'the sandbox named no commit')
  return collected
}

/** Times a full disk may have room again and the script be run anew. */
const maxFullDisks = 20

/**
 * Runs the script, or joins the run of an earlier process of ours. One that met a full disk has ended: where the step is
 * repeated the next one gets a name of its own, or the old failure would be read for ever.
 */
async function collectOnDisk(
  daemon: DaemonClient,
  id: string,
  request: CollectRequest,
  { signal, timeoutMs: limitMs, onStarted }: WithinTime,
): Promise<CommandResult> {
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? id : `${id}.${number}-disk`
    const before = await daemon.findProcess(name, { signal })
    const result = await runCommand(
      daemon,
      name,
      // In memory: it may end with the daemon, since it is safe to repeat, and starts sooner.
      { argv: ['/bin/sh', '-c', collectScript], env: collectEnvironment(request), keep: 'memory' },
      { signal, isRepeatable: true, timeoutMs: limitMs, timeoutCode: 'ResultFailed', onStarted },
    )
    if (!isDiskFullText(result.tail)) return result
    if (!before?.exit || number === maxFullDisks)
      throw new TaskError('DiskFull', `the disk of the sandbox is full: ${result.tail}`)
  }
}

/**
 * Keeps the whole work tree, the agent's `.git` included, as an artifact: the last way out. What cannot be read is
 * missing in it. False when not even that works.
 */
export async function archiveWork(context: StepContext): Promise<boolean> {
  const { task, record, signal } = context
  try {
    const { daemon } = await context.openSandbox()
    const { repository, scratch } = await context.findWorkspace()
    const keep = async (content: AsyncIterable<Uint8Array>): Promise<void> => {
      await record.write(`artifact/${archiveName}`, bounded(content, 4 * quarantineLimits.bundleBytes), { signal })
    }
    try {
      await keep(daemon.getTar(repository, { signal }))
    } catch (error) {
      if (signal.aborted) throw error
      // tar ends with an error for one unreadable file: a second try leaves those out.
      const archive = `${scratch}/${archiveName}`
      const env = { REPO: repository, ARCHIVE: archive }
      const result = await runCommand(
        daemon,
        `${task.metadata.uid}.archive`,
        { argv: ['/bin/sh', '-c', archiveScript], env },
        { signal, isRepeatable: true, timeoutMs },
      )
      if (result.exit.exit_code !== 0) throw error
      await keep(daemon.readFileStream(archive, { signal }))
    }
    return true
  } catch (error) {
    if (signal.aborted) throw error
    context.log.warn('the work tree could not be archived', { error })
    return false
  }
}

export async function* bounded(chunks: AsyncIterable<Uint8Array>, limitBytes: number): AsyncIterable<Uint8Array> {
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > limitBytes)
      throw new TaskError('ResultTooLarge', `the result is larger than ${limitBytes} bytes`, {
        details: { limit: 'bundleBytes' },
      })
    yield chunk
  }
}
