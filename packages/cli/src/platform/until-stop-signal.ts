/**
 * Resolves with the name of the first stop signal; a second one ends the process as soon as `beforeExit` has settled, a
 * third one at once.
 */
export function untilStopSignal(beforeExit: () => Promise<void> = () => Promise.resolve()): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let count = 0
    const on = (signal: NodeJS.Signals): void => {
      count += 1
      if (count > 2) process.exit(130)
      if (count === 2) void beforeExit().finally(() => process.exit(130))
      resolve(signal)
    }
    process.on('SIGINT', on)
    process.on('SIGTERM', on)
  })
}
