import { setTimeout as sleep } from 'node:timers/promises'
import type { DaemonClient } from '@corral/protocol'
import { defaultCheckpointSeconds, errorCode } from '@corral/resources'
import { quarantineLimits } from '../repository/quarantine.js'
import { collectScript } from '../sandbox/collect-script.js'
import { collectEnvironment, isUnchanged, parseCollected, scratchFiles } from '../sandbox/collected-work.js'
import { runCommand } from '../sandbox/run-command.js'
import { baseCommitOf } from './accepted-bundle.js'
import { bounded, collectRequest } from './collect-work.js'
import { takeKeptBundle } from './kept-bundle.js'
import { takeLfsFrom } from './lfs-step.js'
import type { StepContext } from './step.js'

/** The last checkpoint in the record of a task, and what it holds beside the result. */
export const checkpointParts = { result: 'checkpoint/result.bundle', kept: 'checkpoint/kept.bundle' } as const

/** Directory below the task's scratch in which checkpoints are made. */
const workName = 'checkpoint'

const timeoutMs = 5 * 60_000

/** A checkpoint may take this part of the agent's time at most: after one that took long the next one waits longer. */
const shareOfTime = 0.05

/** The lowest priority: whatever time the agent wants it gets first. */
const gently =
  'if command -v nice > /dev/null; then exec nice -n 19 /bin/sh -c "$SCRIPT"; fi; exec /bin/sh -c "$SCRIPT"'

/**
 * Takes the state of the work out while the agent runs, again and again until `signal` aborts. It never fails: an agent is
 * not stopped because a checkpoint of it could not be made.
 */
export async function takeCheckpoints(daemon: DaemonClient, context: StepContext, signal: AbortSignal): Promise<void> {
  const everyMs = (context.task.spec.checkpointSeconds ?? defaultCheckpointSeconds) * 1000
  if (everyMs === 0) return
  let waitMs = everyMs
  // Ids of processes are never used twice, so that a platform that was restarted goes on counting.
  for (let number = context.now().getTime(); ; number++) {
    try {
      await sleep(waitMs, undefined, { signal, ref: false })
      const startedAt = performance.now()
      await takeCheckpoint(daemon, { ...context, signal }, `${context.task.metadata.uid}.checkpoint-${number}`)
      waitMs = Math.max(everyMs, (performance.now() - startedAt) / shareOfTime)
    } catch (error) {
      if (signal.aborted) return
      context.log.warn('a checkpoint failed', { error, code: errorCode(error) })
      waitMs = Math.min(10 * everyMs, 2 * waitMs)
    }
  }
}

/** Takes the work out once, under a process id that was not used before. */
export async function takeCheckpoint(daemon: DaemonClient, context: StepContext, id: string): Promise<void> {
  const { record, signal } = context
  const request = await collectRequest(context, baseCommitOf(context), workName)
  const { scratch } = request.place
  const lastState = `${scratch}/checkpoint-state`
  const env = { ...collectEnvironment({ ...request, lastState }), SCRIPT: collectScript }
  const argv = ['/bin/sh', '-c', gently]
  const { exit, stdout, tail } = await runCommand(daemon, id, { argv, env }, { signal, timeoutMs }).catch(
    async (error: unknown) => {
      // The agent has ended: its work is collected now, without a second reader of it.
      if (signal.aborted) await daemon.signal(id, 'SIGKILL', { timeoutMs: 1_000 }).catch(() => undefined)
      throw error
    },
  )
  if (exit.exit_code !== 0) throw new Error(`the work could not be taken out: ${tail}`)
  if (isUnchanged(stdout)) return
  const collected = parseCollected(stdout)
  if (!collected) throw new Error('the sandbox named no commit')
  await takeLfsFrom(daemon, context, collected.lfs)
  const limitBytes = quarantineLimits.bundleBytes
  if (collected.changed) {
    const bundle = daemon.readFileStream(scratchFiles.resultBundle(scratch, workName), { signal })
    await record.write(checkpointParts.result, bounded(bundle, limitBytes), { signal })
  } else await record.remove(checkpointParts.result)
  if (collected.kept) {
    const path = scratchFiles.keptBundle(scratch, workName)
    const warnings = await takeKeptBundle(context, { daemon, path, part: checkpointParts.kept, limitBytes })
    if (warnings.length > 0) context.log.warn('a checkpoint is without what lies beside the result', { warnings })
  } else await record.remove(checkpointParts.kept)
  // Only what is in the record need not be taken out again.
  const state = await daemon.readFile(scratchFiles.state(scratch, workName), { maxBytes: 100, signal })
  await daemon.writeFile(lastState, state, { signal })
  context.log.debug('checkpoint taken', { commit: collected.commit, changed: collected.changed })
}

/** A result that was accepted makes checkpoints of it needless. */
export async function removeCheckpoint({ record }: Pick<StepContext, 'record'>): Promise<void> {
  for (const part of Object.values(checkpointParts)) await record.remove(part)
}
