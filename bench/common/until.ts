/** Asks until it is so. Rejects, naming what was waited for, when the time is over. */
export async function until(
  what: string,
  isSo: () => Promise<boolean>,
  timeoutMs = 60_000,
  everyMs = 20,
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`${what}: not so after ${timeoutMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}
