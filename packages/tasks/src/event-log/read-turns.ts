/** Parts of logs that are read at the same time: one is parsed while the disk has the next. */
const atOnce = 2

/**
 * Lets few reads run at once, first come, first served, and gives the event loop a turn after each. Hundreds of readers would
 * otherwise each have a part of their log parsed in every turn of the loop, and a request, which takes some turns to be
 * answered, waits for many seconds.
 */
export function createReadTurns(
  nextTurn: (run: () => void) => void = setImmediate,
): <T>(read: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let running = 0
  /** The place goes to the one that waits longest, so that none who comes just now takes it as well. */
  const end = (): void => {
    const next = waiting.shift()
    if (next) next()
    else running -= 1
  }
  return async (read) => {
    if (running >= atOnce) await new Promise<void>((go) => waiting.push(go))
    else running += 1
    try {
      return await read()
    } finally {
      nextTurn(end)
    }
  }
}
