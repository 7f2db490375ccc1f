import type { KubeClient } from '@corral/kube'
import type { Logger } from '@corral/ports'
import {
  egressRefusedAnnotation,
  isConflict,
  isNotFound,
  type Pod,
  Pods,
  type RefusedHost,
  type Stored,
  writeEgressRefused,
} from '@corral/resources'
import type { NetworkReport } from '../isolation/isolation.js'
import type { PodEvents } from '../pod-events.js'
import { reference } from './status-writer.js'

export interface RefusalReporterPorts {
  client: KubeClient
  events: PodEvents
  log: Logger
}

/**
 * Tells a pod's users what of the network was refused to it: an event for each host and for connections over the limit,
 * and the whole list in an annotation, which watchers of the pod read. Repeats are counted, not told again.
 */
export class RefusalReporter {
  readonly #told = new Map<string, Set<string>>()
  readonly #writing = new Set<string>()
  readonly #latest = new Map<string, { pod: Stored<Pod>; report: NetworkReport }>()

  constructor(private readonly ports: RefusalReporterPorts) {}

  report(pod: Stored<Pod>, report: NetworkReport): void {
    const { uid } = pod.metadata
    const told = this.#told.get(uid) ?? new Set()
    this.#told.set(uid, told)
    for (const refusal of report.refused) {
      const key = `${refusal.host}:${refusal.port ?? ''}:${refusal.reason}`
      if (told.has(key)) continue
      told.add(key)
      this.ports.events.event(pod, 'Warning', 'EgressRefused', describeRefusal(refusal))
    }
    if (report.connectionLimit && !told.has(report.connectionLimit.of)) {
      told.add(report.connectionLimit.of)
      this.ports.log.warn('connections of a pod refused', { pod: `${pod.metadata.namespace}/${pod.metadata.name}` })
      this.ports.events.event(pod, 'Warning', 'ConnectionsRefused', describeLimit(report.connectionLimit))
    }
    this.#latest.set(uid, { pod, report })
    if (!this.#writing.has(uid)) void this.#annotate(uid)
  }

  forget(podUid: string): void {
    this.#told.delete(podUid)
    this.#latest.delete(podUid)
  }

  /** One write at a time for a pod; what is reported meanwhile is written with the next. Never rejects. */
  async #annotate(uid: string): Promise<void> {
    this.#writing.add(uid)
    try {
      for (let latest = this.#latest.get(uid); latest; latest = this.#latest.get(uid)) {
        this.#latest.delete(uid)
        await this.#write(latest.pod, latest.report)
      }
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error))
        this.ports.log.debug('refused egress not written to the pod', { error })
    } finally {
      this.#writing.delete(uid)
    }
  }

  async #write(pod: Stored<Pod>, report: NetworkReport): Promise<void> {
    const { uid } = pod.metadata
    const { refused, otherHosts, refusedConnections } = report
    const value = writeEgressRefused({ refused, otherHosts, refusedConnections })
    await this.ports.client.patch(
      Pods,
      reference(pod),
      // With the uid in it the patch is refused for another pod of the same name.
      { type: 'merge', body: { metadata: { uid, annotations: { [egressRefusedAnnotation]: value } } } },
    )
  }
}

const why: Readonly<Record<RefusedHost['reason'], string>> = {
  NotAllowed: 'is not open to this pod; its corral.dev/egress annotation names what is',
  TooManyNames: 'was refused: the pod has asked for more names under its wildcards than one pod may',
  Unresolved: 'is open to this pod, but the name does not resolve on this machine',
  ForbiddenAddress: 'is open to this pod, but leads to an address no name may lead to (this machine, link-local)',
  Unreachable: 'is open to this pod, but does not answer',
}

function describeRefusal({ host, port, reason }: RefusedHost): string {
  return `${host}${port === undefined ? '' : `:${port}`} ${why[reason]}`
}

const limitText: Readonly<
  Record<NonNullable<NetworkReport['connectionLimit']>['of'], (connections: number) => string>
> = {
  pod: (most) => `the pod has more than ${most} connections open at once; further ones are refused until some close`,
  node: (most) =>
    `all pods of this node have more than ${most} connections open; further ones are refused until some close`,
  second: (most) => `the pod opens more than ${most} connections a second; further ones are refused for a moment`,
}

function describeLimit({ of, connections }: NonNullable<NetworkReport['connectionLimit']>): string {
  return limitText[of](connections)
}
