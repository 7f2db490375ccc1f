/** How many requests may begin in one turn of the event loop: about a millisecond of work. */
const perTurn = 4

/**
 * Lets few jobs begin in one turn of the event loop; the others wait for the next turns, first come, first served. A
 * hundred requests that arrive at once would otherwise all be taken before the loop comes back to the answers that are
 * already streaming, which then stand still for as long as the hundred take.
 */
export function createRequestTurns(nextTurn: (run: () => void) => void = setImmediate): (job: () => void) => void {
  const waiting: (() => void)[] = []
  let begun = 0
  const turn = (): void => {
    begun = 0
    for (const job of waiting.splice(0, perTurn)) begin(job)
  }
  const begin = (job: () => void): void => {
    if (begun === 0) nextTurn(turn)
    begun += 1
    job()
  }
  return (job) => {
    if (begun >= perTurn || waiting.length > 0) waiting.push(job)
    else begin(job)
  }
}
