/** The machine's monotonic clock, the same in every process: `performance.now()` counts from the start of its own. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6
