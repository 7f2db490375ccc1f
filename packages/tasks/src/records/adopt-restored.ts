import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { KubeClient } from '@corral/kube'
import { AgentTasks } from '@corral/resources'
import { checkedUid } from '../task-uid.js'

/** The uid a restored task had before: its record still lies under that one. */
export const restoredFromAnnotation = 'corral.dev/restored-from'

/**
 * Gives tasks that were restored from a back-up the records they had: an API server gives every object a new uid, and
 * records are kept by it. Before the controller starts, which would begin new ones. Safe to repeat.
 */
export async function adoptRestoredRecords(options: {
  client: Pick<KubeClient, 'list'>
  namespace: string
  /** The directory of the records. */
  directory: string
}): Promise<void> {
  const { items } = await options.client.list(AgentTasks, { namespace: options.namespace })
  for (const { metadata } of items) {
    const before = metadata.annotations?.[restoredFromAnnotation]
    if (before === undefined) continue
    const [from, to] = [before, metadata.uid].map((uid) => join(options.directory, checkedUid(uid)))
    await rename(from!, to!).catch((error: NodeJS.ErrnoException) => {
      // Adopted before, or never there; a record that has begun under the new uid stays.
      if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code ?? '')) throw error
    })
  }
}
