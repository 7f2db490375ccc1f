import type { Logger } from '@corral/ports'

/**
 * Whether what kept a pod's containers is gone. The API has to learn it before the pod is made again: that takes a new keeper,
 * seconds on a busy machine, and until it is told claims are bound to the pod as if it were there.
 */
export class PodLoss {
  #isLost: boolean
  #isTold: boolean

  constructor(
    isLost: boolean,
    private readonly log: Logger,
  ) {
    this.#isLost = isLost
    this.#isTold = !isLost
  }

  /** From the loss until a container of the pod has been started again. */
  get isLost(): boolean {
    return this.#isLost
  }

  happened(): void {
    this.#isLost = true
    this.#isTold = false
  }

  over(): void {
    this.#isLost = false
  }

  /**
   * Answers whether it was told just now. A full disk must not keep a pod from its end: what could not be told is told by a
   * later call.
   */
  async tell(writeStatus: () => Promise<unknown>): Promise<boolean> {
    if (this.#isTold) return false
    this.#isTold = true
    try {
      await writeStatus()
      return true
    } catch (error) {
      this.#isTold = false
      this.log.debug('loss of the pod not told yet', { error })
      return false
    }
  }
}
