import type { Logger } from '@corral/resources'
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
  start(uid: string, name: StepName, work: (signal: AbortSignal) => Promise<StepOutcome>): void
  /** Aborts the running step and forgets it; settles when it has let go of everything. */
  abort(uid: string): Promise<void>
  forget(uid: string): void
  /** Aborts everything. */
  close(): Promise<void>
}

interface Entry {
  name: StepName
  running: boolean
  controller: AbortController
  settled: Promise<void>
  ended?: EndedStep
  failures: number
}

export function createStepRunner(options: { wake: (uid: string) => void; log: Logger }): StepRunner {
  const entries = new Map<string, Entry>()

  const abort = async (uid: string): Promise<void> => {
    const entry = entries.get(uid)
    if (!entry) return
    entries.delete(uid)
    entry.controller.abort(new Error('the step is no longer wanted'))
    await entry.settled
  }

  return {
    current(uid) {
      const entry = entries.get(uid)
      return entry ? { name: entry.name, running: entry.running } : undefined
    },
    takeEnded(uid) {
      const entry = entries.get(uid)
      if (!entry?.ended) return undefined
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
        controller,
        settled: Promise.resolve(),
        failures: before?.name === name ? before.failures : 0,
      }
      entries.set(uid, entry)
      entry.settled = work(controller.signal).then(
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
    abort,
    forget: (uid) => void entries.delete(uid),
    async close() {
      await Promise.all([...entries.keys()].map(abort))
    },
  }
}
