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
  const [state = 'Z'] = statFields(pid)
  return state === 'Z'
}

/** The processes this one has started and not yet reaped, ended ones included. */
function ownChildren(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === process.pid)
    .map(Number)
}

/** The state of a process and its parent are the first fields behind its name, which may contain anything. */
function statFields(pid: string): string[] {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return status.slice(status.lastIndexOf(')') + 2).split(' ', 2)
  } catch {
    return [] // gone altogether
  }
}

const parentOf = (pid: string): number => Number(statFields(pid)[1])

/**
 * Waits until every child has ended and been reaped; what has not after `patienceMs` is killed. A process that leaves
 * children behind leaves them to the machine's first process, which in a container often reaps nothing.
 */
export async function reapChildren(patienceMs: number): Promise<void> {
  const killAt = Date.now() + patienceMs
  const giveUpAt = killAt + patienceMs
  for (let children = ownChildren(); children.length > 0 && Date.now() < giveUpAt; children = ownChildren()) {
    if (Date.now() > killAt) for (const pid of children) kill(pid)
    await delay(5)
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended between the look and the signal.
  }
}

/** Kills until no process of this uid is left, or `timeoutMs` have passed. Never for uid 0. */
export async function killUid(uid: number, timeoutMs = 5000): Promise<boolean> {
  if (uid === 0) return false
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const pids = pidsOfUid(uid)
    if (pids.length === 0) return true
    for (const pid of pids) kill(pid)
    if (Date.now() > deadline) return false
    await delay(5)
  }
}
