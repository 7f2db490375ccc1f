import type { StepContext } from '../steps/step.js'
import { continuedWork } from '../thread/continued-work.js'
import { isInPlace } from './hold.js'

/**
 * A task that went on in a held sandbox fetched nothing before its agent ran. Before its result is looked at the mirror
 * needs the commit it builds on, and the record a bundle of it. Safe to repeat.
 */
export async function ensureBase(context: StepContext): Promise<void> {
  const { task, record, signal } = context
  const { baseCommit } = task.status ?? {}
  if (!baseCommit || !isInPlace(task) || (await record.find('bundle-in'))) return
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
