import { open } from 'node:fs/promises'
import { mergeWarnings, taskWarning } from '@corral/protocol'
import { readBundleHeader } from '../repository/bundle-header.js'
import { resultRef } from '../repository/quarantine.js'
import { TaskError } from '../task-error.js'
import { acceptBundle } from './accepted-bundle.js'
import { checkpointParts } from './checkpoints.js'
import type { Step, StepContext, StepOutcome } from './step.js'

const keptBundle = 'artifact/kept.bundle'

/** The sandbox is gone with its disk: what the last checkpoint took out is the result. */
export const salvageStep: Step = async (context) => {
  const { record, signal } = context
  const checkpoint = await record.find(checkpointParts.result)
  if (!checkpoint) return (await record.find(checkpointParts.kept)) ? besideCheckpoint(context) : lost
  await record.write('bundle-out', record.read(checkpointParts.result), { signal })
  return fromCheckpoint(
    context,
    'FromCheckpoint',
    'the sandbox was lost; the result is the last checkpoint of the work',
  )
}

const lost: StepOutcome = {
  condition: 'ResultCollected',
  reason: 'Lost',
  message: 'the sandbox was lost with what the agent did; there was no checkpoint of it',
  events: [{ type: 'stage', stage: 'result', state: 'failed', detail: 'there was no checkpoint of the work' }],
}

/** The last checkpoint had nothing for the branch, but stashes, changes in submodules and the like. */
async function besideCheckpoint({ task, record, signal }: StepContext): Promise<StepOutcome> {
  await record.write(keptBundle, record.read(checkpointParts.kept), { signal })
  const detail = 'the last checkpoint had no change of the branch; what lay beside it is kept.bundle'
  const warning = taskWarning('FromCheckpoint')
  return {
    ...lost,
    message: `the sandbox was lost with what the agent did; ${detail}`,
    status: {
      artifacts: await record.list('artifact'),
      warnings: mergeWarnings(task.status?.warnings ?? [], [warning]),
    },
    events: [
      { type: 'warning', ...warning },
      { type: 'stage', stage: 'result', state: 'failed', detail },
    ],
  }
}

/** The work is still in its sandbox and cannot be taken out: what the last checkpoint took out is the result, if there is one. */
export async function checkpointInstead(context: StepContext, why: string): Promise<StepOutcome | undefined> {
  const { task, record, signal } = context
  if (!(await record.find(checkpointParts.result))) return undefined
  await record.write('bundle-out', record.read(checkpointParts.result), { signal })
  const outcome = await fromCheckpoint(context, 'NotTakenOut', `${why}; the result is the last checkpoint of the work`)
  const { sandbox } = task.status ?? {}
  return { ...outcome, status: { ...outcome.status, ...(sandbox ? { sandbox: { ...sandbox, kept: true } } : {}) } }
}

async function fromCheckpoint(context: StepContext, reason: string, message: string): Promise<StepOutcome> {
  const { task, record, signal } = context
  if (await record.find(checkpointParts.kept))
    await record.write(keptBundle, record.read(checkpointParts.kept), { signal })
  const accepted = await acceptBundle(context, await commitIn(context))
  const artifacts = await record.list('artifact')
  const warnings = mergeWarnings(task.status?.warnings ?? [], [...accepted.warnings, taskWarning('FromCheckpoint')])
  return {
    condition: 'ResultCollected',
    reason,
    message,
    status: { ...accepted.status, outcome: 'partial', warnings, ...(artifacts.length > 0 ? { artifacts } : {}) },
    events: [
      { type: 'warning', ...taskWarning('FromCheckpoint') },
      { type: 'stage', stage: 'result', state: 'finished', detail: `from the last checkpoint, ${accepted.detail}` },
    ],
  }
}

/** The commit that the bundle names: it came out of a sandbox, and is checked like every other. */
async function commitIn({ record }: StepContext): Promise<string> {
  const file = await open(await record.localFile('bundle-out'), 'r')
  try {
    const header = await readBundleHeader(file)
    const commit = typeof header === 'string' ? undefined : header.refs.find(({ name }) => name === resultRef)?.commit
    if (commit) return commit
    throw new TaskError('ResultRejected', 'the checkpoint holds no result')
  } finally {
    await file.close()
  }
}
