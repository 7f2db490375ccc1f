import { setTimeout } from 'node:timers/promises'
import type { KubeClient } from '@corral/kube'
import { environmentFilePath, type TaskEventBody, taskWarning } from '@corral/protocol'
import { type AgentTask, type Pod, Pods, type RefusedHost, readEgressRefused } from '@corral/resources'
import type { SandboxContext } from './sandbox-context.js'
import { grantCommand } from './task-environment.js'

type Refused = Pick<RefusedHost, 'host' | 'process'>

const lookEveryMs = 3_000
/** What a program was refused right before it ended is in the pod's annotation a moment later. */
const settleMs = 3_000
const settleLookMs = 250

/** Tells in the task's events, once per name, what its sandbox asked for and may not reach. */
export interface RefusalWatch {
  /** Waits a moment for the node to tell what it refused, and says which names. Never rejects. */
  settled(): Promise<readonly string[]>
  /** Looks a last time and ends. Never rejects: a task goes on without it. */
  stop(): Promise<void>
}

export function watchRefusals(
  { task, eventLog, log }: Pick<SandboxContext, 'task' | 'eventLog' | 'log'>,
  client: Pick<KubeClient, 'find'>,
): RefusalWatch {
  const { uid, namespace = 'default' } = task.metadata
  const name = task.status?.sandbox?.podName
  let told: Set<string> | undefined
  const seen = new Set<string>()
  let looking = Promise.resolve()
  const look = async (): Promise<void> => {
    const pod = name ? await client.find(Pods, { namespace, name }) : undefined
    const refused = refusedNames(pod)
    if (refused.length === 0) return
    for (const { host } of refused) seen.add(host)
    told ??= await toldBefore(eventLog, uid)
    const fresh = refused.filter(({ host }) => !told?.has(host))
    for (const { host } of fresh) told.add(host)
    if (fresh.length > 0)
      await eventLog.append(
        uid,
        fresh.map((each) => refusalEvent(each, task)),
      )
  }
  const lookNext = (): Promise<void> => {
    looking = looking.then(look).catch((error: unknown) => log.debug('refused names not told', { error }))
    return looking
  }
  const timer = setInterval(() => void lookNext(), lookEveryMs)
  return {
    async settled() {
      for (let waitedMs = 0; waitedMs <= settleMs; waitedMs += settleLookMs) {
        await lookNext()
        if (seen.size > 0) break
        await setTimeout(settleLookMs)
      }
      return [...seen]
    },
    async stop() {
      clearInterval(timer)
      await lookNext()
    },
  }
}

/** Names that no rule of the task covers; a port is known only where the name itself is open. Pure. */
export function refusedNames(pod: Pod | undefined): Refused[] {
  const refused = readEgressRefused(pod?.metadata?.annotations)?.refused ?? []
  return refused.filter(({ reason }) => reason === 'NotAllowed')
}

/** What was refused to whom, and what would allow it: for this task, and where a file of the repository counts, for all of them. */
export function refusalEvent(
  { host, process }: Refused,
  { spec, status }: Pick<AgentTask, 'spec' | 'status'>,
): TaskEventBody {
  const rule = `${host}:443`
  const forTask = `allow it with --allow ${rule}, or for set-up alone with --allow-setup ${rule}`
  const command = grantCommand(spec.repository.url, { egress: [rule], secrets: [] })
  const forAll = status?.environment?.source
    ? `; for every task: name it in ${environmentFilePath}, then ${command}`
    : ''
  const by = process === undefined ? '' : `, asked for by ${process}`
  return { type: 'warning', ...taskWarning('EgressRefused', { detail: `${host}${by}; ${forTask}${forAll}` }) }
}

const maxHinted = 5

/** What a set-up that failed had asked for in vain, and what opens it. Pure. */
export function refusedHint(
  hosts: readonly string[],
  { spec, status }: Pick<AgentTask, 'spec' | 'status'>,
): string | undefined {
  if (hosts.length === 0) return undefined
  const egress = hosts.slice(0, maxHinted).map((host) => `${host}:443`)
  const others = hosts.length > maxHinted ? ` and ${hosts.length - maxHinted} more` : ''
  const command = grantCommand(spec.repository.url, { egress, secrets: [] })
  const opened = status?.environment?.source
    ? `name what it needs under egress.setup of ${environmentFilePath}, then: \`${command}\`.`
    : `allow what it needs: \`${egress.map((rule) => `--allow-setup ${rule}`).join(' ')}\`.`
  return `It asked for ${egress.join(', ')}${others}, which it may not reach: ${opened}`
}

/** An earlier step or process has told of these. */
async function toldBefore(eventLog: SandboxContext['eventLog'], uid: string): Promise<Set<string>> {
  const told = new Set<string>()
  for await (const event of eventLog.read(uid)) {
    if (event.type !== 'warning' || event.code !== 'EgressRefused') continue
    const [, host] = /--allow ([^\s:,]+):/.exec(event.message) ?? []
    if (host) told.add(host)
  }
  return told
}
