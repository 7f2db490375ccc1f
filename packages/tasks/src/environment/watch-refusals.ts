import type { KubeClient } from '@corral/kube'
import { type TaskEventBody, taskWarning } from '@corral/protocol'
import { type Pod, Pods, readEgressRefused } from '@corral/resources'
import type { StepContext } from '../steps/step.js'

const lookEveryMs = 3_000

/** Tells in the task's events, once per name, what its sandbox asked for and may not reach. */
export interface RefusalWatch {
  /** Looks a last time and ends. Never rejects: a task goes on without it. */
  stop(): Promise<void>
}

export function watchRefusals(
  { task, eventLog, log }: Pick<StepContext, 'task' | 'eventLog' | 'log'>,
  client: Pick<KubeClient, 'find'>,
): RefusalWatch {
  const { uid, namespace = 'default' } = task.metadata
  const name = task.status?.sandbox?.podName
  let told: Set<string> | undefined
  let looking = Promise.resolve()
  const look = async (): Promise<void> => {
    const pod = name ? await client.find(Pods, { namespace, name }) : undefined
    const names = refusedNames(pod)
    if (names.length === 0) return
    told ??= await toldBefore(eventLog, uid)
    const fresh = names.filter((each) => !told?.has(each))
    for (const each of fresh) told.add(each)
    if (fresh.length > 0) await eventLog.append(uid, fresh.map(refusalEvent))
  }
  const lookNext = (): Promise<void> => {
    looking = looking.then(look).catch((error: unknown) => log.debug('refused names not told', { error }))
    return looking
  }
  const timer = setInterval(() => void lookNext(), lookEveryMs)
  return {
    async stop() {
      clearInterval(timer)
      await lookNext()
    },
  }
}

/** Names that no rule of the task covers; a port is known only where the name itself is open. Pure. */
export function refusedNames(pod: Pod | undefined): string[] {
  const refused = readEgressRefused(pod?.metadata?.annotations)?.refused ?? []
  return refused.filter(({ reason }) => reason === 'NotAllowed').map(({ host }) => host)
}

export function refusalEvent(host: string): TaskEventBody {
  const detail = `${host}; allow it with --allow ${host}:443, or for set-up alone with --allow-setup ${host}:443`
  return { type: 'warning', ...taskWarning('EgressRefused', { detail }) }
}

/** An earlier step or process has told of these. */
async function toldBefore(eventLog: StepContext['eventLog'], uid: string): Promise<Set<string>> {
  const told = new Set<string>()
  for await (const event of eventLog.read(uid)) {
    if (event.type !== 'warning' || event.code !== 'EgressRefused') continue
    const [, host] = /--allow ([^\s:,]+):/.exec(event.message) ?? []
    if (host) told.add(host)
  }
  return told
}
