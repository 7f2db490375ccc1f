import type {
  ContainerState as ContainerStateStatus,
  ContainerStateTerminated,
  ContainerStatus,
  Pod,
  PodCondition,
  PodStatus,
} from '@corral/resources'
import { egressCondition, imageCondition, resourcesCondition, snapshotCondition } from '@corral/resources'
import { type ContainerState, type RoledContainer, rolesOf } from '../records/container-state.js'
import type { SnapshotState } from '../snapshots/pod-snapshot.js'
import { isSettled } from './plan.js'
import type { LimitsState } from './pod-limits.js'
import type { EgressState } from './pod-reach.js'
import { qosClass } from './qos-class.js'
import { restartDelayMs } from './restart-backoff.js'

export interface StatusInput {
  pod: Pod
  containers: ReadonlyMap<string, ContainerState>
  startTime: string
  podIP?: string | undefined
  hostIP: string
  prepared: boolean
  /** The network the address belonged to is gone, and no container has been started in a new one. */
  isLost?: boolean | undefined
  /** The pod's directory, uid and address are made: from here on `PodReadyToStartContainers` may be true. */
  failure?: { reason: string; message: string } | undefined
  /** Why the node is about to end the pod, or has ended it, for the disk's sake. */
  disruption?: string | undefined
  /** What keeps the node from making the pod's sandbox. */
  obstacle?: { reason: string; message: string } | undefined
  /** How the pod's network stands, once its annotation has opened something. */
  egress?: EgressState | undefined
  /** How the pod's snapshot stands, once its annotation has named one. */
  snapshot?: SnapshotState | undefined
  /** How its limits stand, once its annotation has named some. */
  limits?: LimitsState | undefined
  /** How its root file system stands, where its annotation names one. */
  image?: { status: 'True' | 'False'; reason: string; message: string } | undefined
  isEnding: boolean
  now: Date
}

/** The condition by which Kubernetes tells that a pod is about to be ended, and why. */
const disruptionTarget = 'DisruptionTarget'
const ownConditions = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled']

/** The pod's status as a kubelet reports it. Conditions of others are kept; times change only with their condition. */
export function podStatus(input: StatusInput): PodStatus {
  const { pod, containers } = input
  const spec = pod.spec!
  const roles = rolesOf(spec)
  const statusOf = (entry: RoledContainer): ContainerStatus => containerStatus(input, entry)
  const initStatuses = roles.filter((entry) => entry.role !== 'main').map(statusOf)
  const mainStatuses = roles.filter((entry) => entry.role === 'main').map(statusOf)
  const phase = podPhase(input, roles)

  const status: PodStatus = {
    phase,
    conditions: conditions(input, roles, phase),
    hostIP: input.hostIP,
    hostIPs: [{ ip: input.hostIP }],
    startTime: wholeSeconds(input.startTime),
    containerStatuses: mainStatuses,
    qosClass: qosClass(spec),
  }
  if (pod.metadata?.generation !== undefined) status.observedGeneration = pod.metadata.generation
  if (initStatuses.length > 0) status.initContainerStatuses = initStatuses
  const hasAddress = !input.isLost || phase === 'Succeeded' || phase === 'Failed'
  if (input.podIP && hasAddress && containersOf(containers).some((state) => state.launched > 0)) {
    status.podIP = input.podIP
    status.podIPs = [{ ip: input.podIP }]
  }
  if (input.failure) {
    status.reason = input.failure.reason
    status.message = input.failure.message
  }
  return status
}

/** The one-word summary. Derived from the containers, never remembered. */
export function podPhase(
  input: Pick<StatusInput, 'pod' | 'containers' | 'failure' | 'isEnding'>,
  roles: RoledContainer[],
): 'Pending' | 'Running' | 'Succeeded' | 'Failed' {
  const spec = input.pod.spec!
  const all = roles.flatMap((entry) => input.containers.get(entry.container.name) ?? [])
  const isRunning = all.some((state) => state.run)
  if (input.failure && !isRunning) return 'Failed'
  const mains = roles
    .filter((entry) => entry.role === 'main')
    .flatMap((e) => input.containers.get(e.container.name) ?? [])
  const exits = mains.flatMap((state) => (state.run ? [] : (state.exit ?? [])))
  const isOver = isSettled({ spec, containers: input.containers }, roles) || (input.isEnding && all.length > 0)
  if (isOver && !isRunning) {
    if (!all.some((state) => state.launched > 0)) return 'Pending'
    return exits.length === mains.length && exits.every((exit) => exit.exitCode === 0) ? 'Succeeded' : 'Failed'
  }
  return mains.every((state) => state.launched > 0) ? 'Running' : 'Pending'
}

function containerStatus(input: StatusInput, entry: RoledContainer): ContainerStatus {
  const { container } = entry
  const state = input.containers.get(container.name)
  const isUp = state?.run !== undefined
  const status: ContainerStatus = {
    name: container.name,
    image: container.image ?? '',
    imageID: state && state.launched > 0 ? `corral://${container.image ?? ''}` : '',
    ready: state !== undefined && isReady(entry, state),
    started: isUp && state.started,
    restartCount: Math.max(0, (state?.launched ?? 0) - 1),
    state: currentState(input, entry, state),
    lastState: lastState(input, entry, state),
  }
  if (state && state.launched > 0)
    status.containerID = containerId(input.pod.metadata?.uid ?? '', container.name, state.launched - 1)
  return status
}

function isReady(entry: RoledContainer, state: ContainerState): boolean {
  if (entry.role === 'init') return !state.run && state.exit?.exitCode === 0
  return state.run !== undefined && state.started && state.ready
}

/** An id that stays the same for one run of one container. */
export function containerId(podUid: string, container: string, attempt: number): string {
  return `corral://${podUid}/${container}/${attempt}`
}

function currentState(
  input: StatusInput,
  entry: RoledContainer,
  state: ContainerState | undefined,
): ContainerStateStatus {
  if (state?.run) return { running: { startedAt: wholeSeconds(state.run.startedAt) } }
  if (state?.waiting) return { waiting: { reason: state.waiting.reason, message: state.waiting.message } }
  if (state?.exit) {
    if (!willRestart(input, entry, state)) return { terminated: terminated(input, entry, state) }
    const delaySeconds = restartDelayMs(state.crashes) / 1000
    if (delaySeconds === 0) return { terminated: terminated(input, entry, state) }
    return { waiting: { reason: 'CrashLoopBackOff', message: backOffMessage(input.pod, entry, delaySeconds) } }
  }
  return { waiting: { reason: hasInits(input) && entry.role === 'main' ? 'PodInitializing' : 'ContainerCreating' } }
}

function backOffMessage(pod: Pod, entry: RoledContainer, delaySeconds: number): string {
  const wait = delaySeconds >= 60 ? `${Math.floor(delaySeconds / 60)}m${delaySeconds % 60}s` : `${delaySeconds}s`
  const { name, namespace, uid } = pod.metadata ?? {}
  return `back-off ${wait} restarting failed container=${entry.container.name} pod=${name}_${namespace}(${uid})`
}

function lastState(input: StatusInput, entry: RoledContainer, state: ContainerState | undefined): ContainerStateStatus {
  if (!state?.exit) return {}
  const isShownAsCurrent = 'terminated' in currentState(input, entry, state)
  return isShownAsCurrent ? {} : { terminated: terminated(input, entry, state) }
}

function terminated(input: StatusInput, entry: RoledContainer, state: ContainerState): ContainerStateTerminated {
  const exit = state.exit!
  return {
    exitCode: exit.exitCode,
    reason: exit.reason,
    ...(exit.message ? { message: exit.message } : {}),
    startedAt: wholeSeconds(exit.startedAt),
    finishedAt: wholeSeconds(exit.finishedAt),
    containerID: containerId(input.pod.metadata?.uid ?? '', entry.container.name, exit.attempt),
  }
}

function willRestart(input: StatusInput, entry: RoledContainer, state: ContainerState): boolean {
  if (input.isEnding || input.failure) return false
  const policy = entry.role === 'sidecar' ? 'Always' : (input.pod.spec?.restartPolicy ?? 'Always')
  if (entry.role === 'init' && state.exit?.exitCode === 0) return false
  return policy === 'Always' || (policy === 'OnFailure' && state.exit?.exitCode !== 0)
}

function conditions(input: StatusInput, roles: RoledContainer[], phase: string): PodCondition[] {
  const old = input.pod.status?.conditions ?? []
  const facts = conditionFacts(input, roles, phase)
  const types = [
    ...ownConditions,
    ...(input.egress ? [egressCondition] : []),
    ...(input.snapshot ? [snapshotCondition] : []),
    ...(input.limits ? [resourcesCondition] : []),
    ...(input.image ? [imageCondition] : []),
    ...(input.disruption === undefined ? [] : [disruptionTarget]),
  ]
  const own = types.map((type): PodCondition => {
    const fact = facts[type] ?? { status: 'True' }
    const previous = old.find((condition) => condition.type === type)
    const isSame = previous?.status === fact.status
    return {
      type,
      status: fact.status,
      ...(fact.reason ? { reason: fact.reason } : {}),
      ...(fact.message ? { message: fact.message } : {}),
      lastTransitionTime: (isSame ? previous.lastTransitionTime : undefined) ?? wholeSeconds(input.now.toISOString()),
      ...(input.pod.metadata?.generation === undefined ? {} : { observedGeneration: input.pod.metadata.generation }),
    }
  })
  return [...own, ...old.filter((condition) => !types.includes(condition.type))]
}

type Fact = { status: 'True' | 'False'; reason?: string; message?: string }

function conditionFacts(input: StatusInput, roles: RoledContainer[], phase: string): Record<string, Fact> {
  const stateOf = (entry: RoledContainer): ContainerState | undefined => input.containers.get(entry.container.name)
  const names = (entries: RoledContainer[]): string => `[${entries.map((entry) => entry.container.name).join(' ')}]`
  const notInitialized = roles.filter((entry) => {
    if (entry.role === 'main') return false
    const state = stateOf(entry)
    if (entry.role === 'sidecar') return !(state?.started && (state.run || input.isEnding || phase === 'Running'))
    return !(state?.exit?.exitCode === 0 && !state.run)
  })
  const notReady = roles.filter((entry) => {
    const state = stateOf(entry)
    return entry.role !== 'init' && !(state && isReady(entry, state))
  })
  const initialized: Fact =
    notInitialized.length === 0 || phase === 'Succeeded'
      ? { status: 'True', ...(phase === 'Succeeded' ? { reason: 'PodCompleted' } : {}) }
      : {
          status: 'False',
          reason: 'ContainersNotInitialized',
          message: `containers with incomplete status: ${names(notInitialized)}`,
        }
  const containersReady = readyFact(phase, notReady.length > 0 ? names(notReady) : undefined)
  return {
    [disruptionTarget]: { status: 'True', reason: 'TerminationByKubelet', message: input.disruption ?? '' },
    ...(input.egress ? { [egressCondition]: input.egress } : {}),
    ...(input.snapshot ? { [snapshotCondition]: input.snapshot } : {}),
    ...(input.limits ? { [resourcesCondition]: input.limits } : {}),
    ...(input.image ? { [imageCondition]: input.image } : {}),
    PodReadyToStartContainers: input.prepared ? { status: 'True' } : { status: 'False', ...input.obstacle },
    Initialized: initialized,
    ContainersReady: containersReady,
    Ready: containersReady.status === 'True' ? gatesFact(input.pod) : containersReady,
  }
}

function readyFact(phase: string, notReady: string | undefined): Fact {
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' }
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' }
  if (!notReady) return { status: 'True' }
  return { status: 'False', reason: 'ContainersNotReady', message: `containers with unready status: ${notReady}` }
}

function gatesFact(pod: Pod): Fact {
  const missing = (pod.spec?.readinessGates ?? []).filter(
    (gate) => !pod.status?.conditions?.some((c) => c.type === gate.conditionType && c.status === 'True'),
  )
  if (missing.length === 0) return { status: 'True' }
  const message = missing
    .map((gate) => {
      const isThere = pod.status?.conditions?.some((condition) => condition.type === gate.conditionType)
      const problem = isThere ? 'is not "True"' : 'does not exist'
      return isThere
        ? `the status of pod readiness gate "${gate.conditionType}" ${problem}, but "False"`
        : `corresponding condition of pod readiness gate "${gate.conditionType}" ${problem}.`
    })
    .join(', ')
  return { status: 'False', reason: 'ReadinessGatesNotReady', message }
}

const hasInits = (input: StatusInput): boolean => (input.pod.spec?.initContainers ?? []).length > 0
const containersOf = (containers: ReadonlyMap<string, ContainerState>): ContainerState[] => [...containers.values()]

/** Kubernetes' times in status carry no fraction. */
export function wholeSeconds(iso: string): string {
  return iso.replace(/\.\d+Z$/, 'Z')
}
