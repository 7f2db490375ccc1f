/** How many calls of one task with a budget are under way at once: as many as agents make for themselves and their helpers. */
const callsAtOnce = 8

export interface BudgetTurns {
  /**
   * Waits until fewer than eight calls of the task are under way. Answers what ends the turn, or undefined where `isGone`
   * told meanwhile that the client is: it is asked when the turn comes.
   */
  take(uid: string, isGone: () => boolean): Promise<(() => void) | undefined>
}

/**
 * What a call costs is known once it is over, so calls that begin at once would all begin below the budget, hundreds of them. With
 * turns a budget is passed by what the last few calls cost and no more.
 */
export function createBudgetTurns(): BudgetTurns {
  const tasks = new Map<string, { underWay: number; waiting: (() => void)[] }>()
  const end = (uid: string): void => {
    const task = tasks.get(uid)!
    const next = task.waiting.shift()
    if (next) next()
    else task.underWay -= 1
    if (task.underWay === 0) tasks.delete(uid)
  }
  return {
    async take(uid, isGone) {
      const task = tasks.get(uid) ?? { underWay: 0, waiting: [] }
      tasks.set(uid, task)
      if (task.underWay < callsAtOnce) task.underWay += 1
      else await new Promise<void>((resolve) => task.waiting.push(resolve))
      if (!isGone()) return () => end(uid)
      end(uid)
      return undefined
    },
  }
}
