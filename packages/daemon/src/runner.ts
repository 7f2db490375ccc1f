import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Logger } from '@corral/ports'
import { CorralError, type RunnerTask } from '@corral/protocol'

export interface RunnerOptions {
  readonly workDir: string
  /** How long the simulated work takes. */
  readonly workMs: number
  readonly clock: Clock
  readonly log: Logger
  /** Told once when the task is over, with the exit code the process should end with. */
  readonly onFinished: (exitCode: 0 | 1) => void
}

/**
 * The runner of the proof of concept: takes one task in its life, works on it while the server stays up, leaves a
 * result file and asks for the end of the process.
 */
export class Runner {
  readonly #options: RunnerOptions
  #isLatched = false

  constructor(options: RunnerOptions) {
    this.#options = options
  }

  /** Whether a task has been accepted, now or ever. */
  get isLatched(): boolean {
    return this.#isLatched
  }

  /** Accepts the task and works on it in the background; every later one is refused. */
  accept(task: RunnerTask): void {
    if (this.#isLatched) throw new CorralError('TaskAlreadyAccepted', 'a task has already been accepted')
    this.#isLatched = true
    this.#options.log.info('task accepted', { taskID: task.taskID })
    void this.#work(task)
  }

  /** Never rejects: a failure is the exit code 1. */
  async #work(task: RunnerTask): Promise<void> {
    const { workDir, workMs, clock, log, onFinished } = this.#options
    try {
      const file = join(workDir, `result-${task.taskID}.txt`)
      await mkdir(workDir, { recursive: true })
      await writeFile(file, resultText(task, clock.now()))
      await new Promise((resolve) => setTimeout(resolve, workMs))
      log.info('task completed', { taskID: task.taskID, file })
      onFinished(0)
    } catch (error) {
      log.error('task failed', { taskID: task.taskID, error: String(error) })
      onFinished(1)
    }
  }
}

/** What the result file says: the id, the message, and when, in RFC 3339. */
export function resultText(task: RunnerTask, now: Date): string {
  return `Task ID: ${task.taskID}\nMessage: ${task.message}\nCompleted at: ${now.toISOString()}\n`
}
