import type { Container, PodSpec } from '@corral/resources'

/** One run of a container that is over. */
export interface FinishedRun {
  attempt: number
  startedAt: string
  finishedAt: string
  exitCode: number
  /** `Completed`, `Error`, `OOMKilled` or `ContainerStatusUnknown`. */
  reason: string
  message?: string
}

/** Why the node ends a container that would have gone on. */
export type StopCause = 'PodDeleted' | 'PodFailed' | 'PodFinished' | 'Unhealthy' | 'NodeStopping' | 'ImageChanged'

/** What the node knows of one container. The fields up to `waiting` survive a restart of the node. */
export interface ContainerState {
  name: string
  /** How many runs have been started; the next one has this number. */
  launched: number
  /** The run that is going on. */
  run?: { startedAt: string }
  /** The latest run that ended. */
  exit?: FinishedRun
  /** Runs since the last one that lasted; decides how long the next start waits. */
  crashes: number
  /** Why it could not be started, and when the node tries again. */
  waiting?: { reason: string; message: string; retryAt: string; tries: number }
  /** The image whose root the latest run has, where the pod's annotation named one. */
  image?: string
  /** Past its startup probe and its postStart hook. */
  started: boolean
  ready: boolean
  /** Set by a probe that gave up on the container. */
  unhealthy?: { message: string; graceSeconds?: number }
  stopping?: { cause: StopCause; deadline: string }
}

export type ContainerRole = 'init' | 'sidecar' | 'main'

export interface RoledContainer {
  container: Container
  role: ContainerRole
}

/** All containers in the order they start, each with its part in the pod's life. */
export function rolesOf(spec: PodSpec): RoledContainer[] {
  const inits = (spec.initContainers ?? []).map(
    (container): RoledContainer => ({ container, role: container.restartPolicy === 'Always' ? 'sidecar' : 'init' }),
  )
  return [...inits, ...spec.containers.map((container): RoledContainer => ({ container, role: 'main' }))]
}

export function newContainerState(name: string): ContainerState {
  return { name, launched: 0, crashes: 0, started: false, ready: false }
}
