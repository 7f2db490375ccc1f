import type { Clock, PodRef, PodStreams } from '@corral/ports'
import { KubeError } from '@corral/resources'
import type { Cell } from '../isolation/isolation.js'
import { readLog } from '../logs/log-reader.js'

/** What the streams need to know of the pods that run here. */
export interface StreamTargets {
  /** The container's running cell. */
  cell(pod: PodRef, container: string): Cell | undefined
  /** Any running cell of the pod: all of them share the pod's network. */
  anyCell(pod: PodRef): Cell | undefined
  /** The log of the latest run or the one before, and when the run ends. */
  log(pod: PodRef, container: string, previous: boolean): { file: string; ended: Promise<unknown> } | undefined
}

/** The streaming sub-resources of this node's pods. */
export function podStreams(targets: StreamTargets, clock: Clock): PodStreams {
  function runningCell(pod: PodRef, container: string): Cell {
    const cell = targets.cell(pod, container)
    if (cell) return cell
    throw new KubeError('NotFound', `container ${container} not found in pod ${pod.name}_${pod.namespace}`, {
      status: 404,
    })
  }

  return {
    async exec(pod, options) {
      const { container, ...rest } = options
      return runningCell(pod, container).exec(rest)
    },
    async attach(pod, options) {
      const { container, stdin, tty, signal } = options
      return runningCell(pod, container).attach({ stdin, tty, ...(signal ? { signal } : {}) })
    },
    async portForward(pod, port, options) {
      const cell = targets.anyCell(pod)
      if (!cell) throw new KubeError('NotFound', `pod ${pod.name}_${pod.namespace} is not running`, { status: 404 })
      return cell.dial(port, options)
    },
    logs(pod, options) {
      const log = targets.log(pod, options.container, options.previous ?? false)
      if (!log) {
        const which = options.previous ? 'previous terminated container' : 'container'
        const message = `${which} "${options.container}" in pod "${pod.name}" not found`
        throw new KubeError('BadRequest', message, { status: 400 })
      }
      return readLog({
        file: log.file,
        ...(options.follow ? { follow: { ended: log.ended } } : {}),
        tailLines: options.tailLines,
        sinceMs: sinceMs(options, clock),
        timestamps: options.timestamps,
        limitBytes: options.limitBytes,
        signal: options.signal,
      })
    },
  }
}

function sinceMs(options: { sinceSeconds?: number; sinceTime?: string }, clock: Clock): number | undefined {
  if (options.sinceSeconds !== undefined) return clock.now().getTime() - options.sinceSeconds * 1000
  return options.sinceTime === undefined ? undefined : Date.parse(options.sinceTime)
}
