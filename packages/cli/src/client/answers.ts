/** Whether a platform answers at an address, ready for work or with a disk that is full. */
export async function answers(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(15_000) })
    // One whose disk is full still answers reads, and refuses writes with the reason.
    return answer.ok || (await answer.text()).startsWith('DiskFull')
  } catch {
    // Not there (any more).
    return false
  }
}
