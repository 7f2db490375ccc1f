/** At most `limit` requests a task in any minute that begins on the minute. */
export function requestPace(limit: number, now: () => number): (uid: string) => boolean {
  let minute = 0
  let counts = new Map<string, number>()
  return (uid) => {
    const current = Math.floor(now() / 60_000)
    if (current !== minute) {
      minute = current
      counts = new Map()
    }
    const count = (counts.get(uid) ?? 0) + 1
    counts.set(uid, count)
    return count <= limit
  }
}
