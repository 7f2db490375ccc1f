import type { Logger } from '@corral/ports'
import type { TalkReport } from '../questions/question-status.js'
import type { StepOutcome } from '../steps/step.js'
import type { StepName, StepState } from './plan.js'

export type EndedStep =
  | { name: StepName; outcome: StepOutcome }
  | {
      name: StepName
      error: unknown /** How often this step has failed in a row, this time included. */
      failures: number
    }

/**
 * Runs at most one step a task beside the reconciler and remembers how it ended until that is taken. Everything here is
 * lost with the process; the steps are made to be repeated.
 */
export interface StepRunner {
  current(uid: string): StepState | undefined
  /** Takes the result of the last step, once. */
  takeEnded(uid: string): EndedStep | undefined
  start(uid: string, name: StepName, work: StepWork): void
  /** The running step says how its conversation with the agent stands: `current` has it from now on. */
  report(uid: string, report: TalkReport): void
  /**
   * Tells the running step to stop. It counts as running until it has let go of everything, then it is forgotten and the
   * task woken; one that does not let go in time is forgotten all the same.
   */
  abort(uid: string): void
  forget(uid: string): void
  /** Aborts everything. Settles when all steps have let go, or after a few seconds. */
  close(): Promise<void>
}

/** `progress` says that the step got on: failures before it no longer count. */
export type StepWork = (signal: AbortSignal, progress: () => void) => Promise<StepOutcome>

const letGoMs = 10_000
const closeMs = 3_000

interface Entry {
  name: StepName
  running: boolean
  aborting: boolean
  controller: AbortController
  settled: Promise<void>
  ended?: EndedStep
  failures: number
  report?: TalkReport
}

export function createStepRunner(options: { wake: (uid: string) => void; log: Logger }): StepRunner {
  const entries = new Map<string, Entry>()

  const abort = (uid: string): void => {
    const entry = entries.get(uid)
    if (!entry || entry.aborting) return
    entry.aborting = true
    entry.controller.abort(new Error('the step is no longer wanted'))
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, letGoMs)
    })
    void Promise.race([entry.settled, patience]).then(() => {
      clearTimeout(timer)
      if (entries.get(uid) !== entry) return
      entries.delete(uid)
      if (entry.running) options.log.warn('a step does not stop', { task: uid, step: entry.name })
      options.wake(uid)
    })
  }

  return {
    current(uid) {
      const entry = entries.get(uid)
      if (!entry) return undefined
      const { name, running, aborting, failures, report } = entry
      return { name, running: running || aborting, aborting, failures, ...(report ? { report } : {}) }
    },
    takeEnded(uid) {
      const entry = entries.get(uid)
      if (!entry?.ended || entry.aborting) return undefined
      const ended = entry.ended
      delete entry.ended
      return ended
    },
    start(uid, name, work) {
      const before = entries.get(uid)
      if (before?.running) throw new Error(`step ${before.name} of task ${uid} is still running`)
      const controller = new AbortController()
      const entry: Entry = {
        name,
        running: true,
        aborting: false,
        controller,
        settled: Promise.resolve(),
        failures: before?.name === name ? before.failures : 0,
      }
      entries.set(uid, entry)
      const progress = (): void => {
        entry.failures = 0
      }
      entry.settled = work(controller.signal, progress).then(
        (outcome) => {
          entry.running = false
          entry.failures = 0
          entry.ended = { name, outcome }
          if (entries.get(uid) === entry) options.wake(uid)
        },
        (error: unknown) => {
          entry.running = false
          entry.failures += 1
          entry.ended = { name, error, failures: entry.failures }
          options.log.debug('step failed', { task: uid, step: name, failures: entry.failures, error })
          if (entries.get(uid) === entry) options.wake(uid)
        },
      )
    },
    report(uid, report) {
      const entry = entries.get(uid)
      if (!entry?.running || entry.aborting) return
      entry.report = report
      options.wake(uid)
    },
    abort,
    forget: (uid) => void entries.delete(uid),
    async close() {
      for (const uid of entries.keys()) abort(uid)
      const settled = Promise.all([...entries.values()].map((entry) => entry.settled))
      let timer: NodeJS.Timeout | undefined
      const patience = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, closeMs)
      })
      await Promise.race([settled, patience]).finally(() => clearTimeout(timer))
    },
  }
}
