import { open } from 'node:fs/promises'
import { identitiesOf } from '../commits/identity.js'
import type { RecordPart } from '../records/task-records.js'
import { readBundleHeader } from '../repository/bundle-header.js'
import { resultRef } from '../repository/quarantine.js'
import { baseCommitOf } from './accepted-bundle.js'
import type { StepContext } from './step.js'

/** The signed result. It is kept before it is pushed: a second signature may make other commits than the first. */
const signedPart: RecordPart = 'checkpoint/signed.bundle'

/** The commit to push: the accepted one, or the same work signed where the task asks for it. Safe to repeat. */
export async function signedCommit(context: StepContext, commit: string): Promise<string> {
  const { task, record, signal } = context
  if (!task.spec.sign) return commit
  const before = await tipOf(context, signedPart)
  if (before) return before
  const signed = await context.repository.sign({
    taskDirectory: await record.workDirectory(),
    baseCommit: baseCommitOf(context),
    commit,
    committer: identitiesOf(task).committer,
    signal,
  })
  await record.keepFile(signedPart, signed.bundlePath)
  return signed.commit
}

/** After the push the signed commits are the result: who goes on from it finds them in its bundle. */
export async function keepSigned({ record, task, signal }: StepContext): Promise<void> {
  if (task.spec.sign && (await record.find(signedPart)))
    await record.write('bundle-out', record.read(signedPart), { signal })
}

async function tipOf({ record }: StepContext, part: RecordPart): Promise<string | undefined> {
  if (!(await record.find(part))) return undefined
  const file = await open(await record.localFile(part), 'r')
  try {
    const header = await readBundleHeader(file)
    return typeof header === 'string' ? undefined : header.refs.find(({ name }) => name === resultRef)?.commit
  } finally {
    await file.close()
  }
}
