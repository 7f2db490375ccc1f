import { isInPlace } from '../held/hold.js'
import { continuedWork } from './continued-work.js'
import type { StepContext } from './step.js'

/**
 * A task that went on in a held sandbox fetched nothing before its agent ran. Before its result is looked at the mirror
 * needs the commit it builds on. Safe to repeat.
 */
export async function ensureBase(context: StepContext): Promise<void> {
  if (isInPlace(context.task)) await ensureBaseBundle(context)
}

/** Puts a bundle of the base into the record, where it is missing: a sandbox with a snapshot was sent a part of it only. */
export async function ensureBaseBundle(context: StepContext): Promise<void> {
  const { task, record, signal } = context
  const { baseCommit } = task.status ?? {}
  if (!baseCommit || (await record.find('bundle-in'))) return
  const { bundlePath } = await context.repository.prepare({
    url: task.spec.repository.url,
    ...(task.spec.baseBranch ? { baseBranch: task.spec.baseBranch } : {}),
    submodules: task.spec.repository.submodules,
    lfs: task.spec.repository.lfs,
    baseCommit,
    continues: await continuedWork(context),
    taskDirectory: await record.workDirectory(),
    signal,
  })
  await record.keepFile('bundle-in', bundlePath)
}
