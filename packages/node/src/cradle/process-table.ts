import { readdirSync, readFileSync, statSync } from 'node:fs'
import { delay } from './delay.js'

/** Every process that belongs to a uid of this machine. One that has ended and waits to be reaped does not count. */
export function pidsOfUid(uid: number): number[] {
  const found: number[] = []
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    // The directory belongs to the process's effective uid, or to root where the process hides itself; the group of
    // pods is ended through its cgroup before, so that this is a second net.
    if (statSync(`/proc/${name}`, { throwIfNoEntry: false })?.uid === uid && !isZombie(name)) found.push(Number(name))
  }
  return found
}

function isZombie(pid: string): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return status.slice(status.lastIndexOf(')') + 2, status.lastIndexOf(')') + 3) === 'Z'
  } catch {
    // Gone altogether.
    return true
  }
}

/** Kills until nobody of this uid is left, or `timeoutMs` have passed. Never for uid 0. */
export async function killUid(uid: number, timeoutMs = 5000): Promise<boolean> {
  if (uid === 0) return false
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const pids = pidsOfUid(uid)
    if (pids.length === 0) return true
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It ended between the look and the signal.
      }
    }
    if (Date.now() > deadline) return false
    await delay(5)
  }
}
