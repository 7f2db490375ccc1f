import { IsolationError } from '../../isolation/isolation-error.js'
import { askSupervisor } from '../client/supervisor-client.js'
import { Frame } from '../protocol/frames.js'
import type { CellRun } from './cell-run.js'
import { delay } from './delay.js'
import { type HolderInput, SnapshotHolder } from './snapshot-holder.js'

const answerMs = 60_000
const askAgainMs = 1

/** The snapshot of one pod, for all its cells, whatever becomes of the process that holds it. */
export class HeldSnapshot {
  #latest: Promise<SnapshotHolder | undefined> = Promise.resolve(undefined)
  #isClosed = false

  constructor(private readonly input: HolderInput) {}

  get name(): string {
    return this.input.attachment.name
  }

  /** Settles when the trees are there to be attached. */
  async ready(): Promise<void> {
    await this.#current()
  }

  /** Into a cell that runs. One that has ended meanwhile needs nothing. */
  async attach(run: CellRun): Promise<void> {
    if (run.pid === undefined) return
    const holder = await this.#current()
    await holder.attach(run.pid).catch((error: unknown) => {
      if (error instanceof IsolationError && error.code === 'NotRunning') return
      throw error
    })
  }

  /** Into a cell whose main process has not been started. */
  async attachBeforeMain(launcher: number, socket: string): Promise<void> {
    const holder = await this.#current()
    await supervisorAnswers(launcher, socket)
    await holder.attach(launcher)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await (await this.#latest)?.close()
  }

  /** One after the other: two at once would start two. */
  #current(): Promise<SnapshotHolder> {
    const next = this.#latest.then((known) => {
      if (this.#isClosed) throw new IsolationError('NotRunning', 'the pod has ended')
      return known && !known.isGone ? known : SnapshotHolder.start(this.input)
    })
    this.#latest = next.catch(() => undefined)
    return next
  }
}

/** The supervisor speaks once every mount of the cell is in place. */
async function supervisorAnswers(launcher: number, socket: string): Promise<void> {
  const deadline = Date.now() + answerMs
  for (;;) {
    try {
      await askSupervisor(socket, Frame.stat)
      return
    } catch (cause) {
      if (!isAlive(launcher) || Date.now() > deadline)
        throw new IsolationError('StartFailed', 'the cell ended before it started', { cause })
    }
    await delay(askAgainMs)
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
