import { errorCode } from '@corral/resources'
import { judgeFailure, retryMs } from '../agent-task/step-failure.js'
import type { EndedBuild } from '../environment/build/plan.js'
import { TaskError } from '../task-error.js'
import { BuildError, type BuildOutcome } from './run-build.js'

/**
 * Does the work of builds beside the reconciler, one piece for each build, and remembers how it ended until that is taken.
 * Everything here is lost with the process: the work is made to be repeated.
 */
export interface BuildRunner {
  isWorking(uid: string): boolean
  /** Whether the work has come to sealing, which ends the pod. */
  isSealing(uid: string): boolean
  /** Takes how the last work ended, once. */
  takeEnded(uid: string): EndedBuild | undefined
  start(uid: string, work: BuildWork): void
  abort(uid: string): void
  /** Settles when all of it has let go, or after a few seconds. */
  close(): Promise<void>
}

/** Calls `onSealing` before the pod of the build is ended. */
type BuildWork = (signal: AbortSignal, onSealing: () => void) => Promise<BuildOutcome>

interface Entry {
  isSealing: boolean
  controller: AbortController
  isWorking: boolean
  failures: number
  settled: Promise<void>
  ended?: EndedBuild
}

const closeMs = 3_000

export function createBuildRunner(wake: (uid: string) => void): BuildRunner {
  const entries = new Map<string, Entry>()
  return {
    isWorking: (uid) => entries.get(uid)?.isWorking === true,
    isSealing: (uid) => entries.get(uid)?.isSealing === true,
    takeEnded(uid) {
      const entry = entries.get(uid)
      const ended = entry?.ended
      if (entry) delete entry.ended
      // After a pause the same work goes on, and its failures count together.
      if (ended && !('retryMs' in ended)) entries.delete(uid)
      return ended
    },
    start(uid, work) {
      const controller = new AbortController()
      const entry: Entry = {
        controller,
        isWorking: true,
        isSealing: false,
        failures: entries.get(uid)?.failures ?? 0,
        settled: Promise.resolve(),
      }
      entries.set(uid, entry)
      entry.settled = work(controller.signal, () => {
        entry.isSealing = true
      }).then(
        (outcome) => {
          entry.isWorking = false
          entry.ended = { outcome }
          wake(uid)
        },
        (error: unknown) => {
          entry.isWorking = false
          if (controller.signal.aborted) return
          entry.failures += 1
          entry.ended = endOf(error, entry.failures)
          wake(uid)
        },
      )
    },
    abort(uid) {
      entries.get(uid)?.controller.abort(new Error('the build is no longer wanted'))
      entries.delete(uid)
    },
    async close() {
      for (const { controller } of entries.values()) controller.abort(new Error('the process stops'))
      let timer: NodeJS.Timeout | undefined
      const patience = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, closeMs)
      })
      const settled = Promise.all([...entries.values()].map((entry) => entry.settled)).then(() => undefined)
      await Promise.race([settled, patience]).finally(() => clearTimeout(timer))
    },
  }
}

function endOf(error: unknown, failures: number): EndedBuild {
  const { cause, known } = error instanceof BuildError ? error : { cause: error, known: {} }
  // The sandbox of a build that found the disk full is removed, which makes room; tried again in it, it would find the same.
  const isFull = cause instanceof TaskError && cause.code === 'DiskFull'
  const failure = judgeFailure('setup', cause, isFull ? Number.POSITIVE_INFINITY : failures)
  if (!failure) return { retryMs: retryMs('setup', failures) }
  const { code, message, hint } = failure
  return {
    failure: {
      code,
      message,
      hint,
      ...known,
      isSandboxLost: code === 'SandboxLost' || errorCode(cause) === 'SandboxLost',
    },
  }
}
