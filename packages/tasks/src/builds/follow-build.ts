import type { Informer, KubeClient } from '@corral/kube'
import { anySignal, type TaskEvent } from '@corral/protocol'
import { type Environment, type EnvironmentBuild, Environments, type Stored } from '@corral/resources'
import { isBuilding, requestBuild } from '../environment/build/environment-object.js'
import type { TaskRecords } from '../records/task-records.js'
import { TaskError } from '../task-error.js'

interface FollowPorts {
  client: Pick<KubeClient, 'find' | 'patch'>
  records: Pick<TaskRecords, 'events'>
  environments: Pick<Informer<Environment>, 'subscribe'>
}

/**
 * See `EnvironmentBuilds.build`. One build is made of all requests that come before it ends. `given` is the environment as it
 * was when no snapshot of it fitted: a build that ended since then is an answer, and is not made again.
 */
export async function followBuild(
  { client, records, environments }: FollowPorts,
  given: Stored<Environment>,
  request: string,
  { signal, onEvents }: { signal: AbortSignal; onEvents: (events: readonly TaskEvent[]) => Promise<void> },
): Promise<EnvironmentBuild> {
  const { namespace = 'default', name } = given.metadata
  const read = async (): Promise<Stored<Environment>> => {
    const found = await client.find(Environments, { namespace, name }, { signal })
    if (found && !found.metadata.deletionTimestamp) return found
    throw new TaskError('SnapshotRefused', `the environment ${name} was deleted`)
  }
  let current = await read()
  const before = current.status?.build
  if (before?.request === request && !isBuilding(current)) {
    await tellRest(records, before.uid, 0, onEvents)
    return before
  }
  const seen = given.status?.build?.number ?? 0
  const wanted = isBuilding(given) ? seen : seen + 1
  let teller: ReturnType<typeof tell> | undefined
  try {
    for (;;) {
      const build = current.status?.build
      if (build && build.number >= wanted) {
        if (teller && teller.uid !== build.uid) await teller.stop()
        if (teller?.uid !== build.uid) teller = tell(records, build.uid, onEvents, signal)
        if (!isBuilding(current)) {
          await teller.stop()
          return build
        }
        await changed(environments, current, signal)
      } else if (await requestBuild(client, current, { request })) await changed(environments, current, signal)
      current = await read()
    }
  } finally {
    await teller?.stop().catch(() => undefined)
  }
}

/** Settles once there is another version of the object than this one. */
function changed(
  environments: FollowPorts['environments'],
  { metadata }: Stored<Environment>,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let unsubscribe: (() => void) | undefined
    let isOver = false
    const end = (settle: () => void): void => {
      if (isOver) return
      isOver = true
      unsubscribe?.()
      signal.removeEventListener('abort', aborted)
      settle()
    }
    const aborted = (): void => end(() => reject(signal.reason as Error))
    const look = ({ metadata: seen }: Stored<Environment>): void => {
      if (seen.uid === metadata.uid && seen.resourceVersion !== metadata.resourceVersion) end(resolve)
    }
    signal.addEventListener('abort', aborted, { once: true })
    // What is known already comes first, and at once; an older version than ours costs one more look.
    unsubscribe = environments.subscribe({ add: look, update: look, delete: look })
    if (isOver) unsubscribe()
    if (signal.aborted) aborted()
  })
}

/** Passes on what the build says until it is stopped, then the rest of it. */
function tell(
  records: FollowPorts['records'],
  uid: string,
  onEvents: (events: readonly TaskEvent[]) => Promise<void>,
  signal: AbortSignal,
): { uid: string; stop(): Promise<void> } {
  const over = new AbortController()
  let after = 0
  const following = (async (): Promise<void> => {
    for await (const event of records.events.read(uid, { follow: true, signal: anySignal([signal, over.signal]) })) {
      after = event.sequence
      await onEvents([event])
    }
  })()
  let stopping: Promise<void> | undefined
  return {
    uid,
    stop() {
      stopping ??= (async () => {
        over.abort()
        await following.catch((error: unknown) => {
          if (!over.signal.aborted) throw error
        })
        if (!signal.aborted) await tellRest(records, uid, after, onEvents)
      })()
      return stopping
    },
  }
}

async function tellRest(
  records: FollowPorts['records'],
  uid: string,
  after: number,
  onEvents: (events: readonly TaskEvent[]) => Promise<void>,
): Promise<void> {
  for await (const event of records.events.read(uid, { after })) await onEvents([event])
}
