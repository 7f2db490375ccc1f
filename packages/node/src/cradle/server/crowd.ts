import type { Cgroup } from './cgroups.js'

/** How many processes a group has, how many of them are new, and how many of those took the place of others. */
export class Crowd {
  #last = new Set<number>()

  /** With fewer processes than `from` they are not told apart, which takes their numbers. */
  constructor(private readonly from: number) {}

  look(cgroup: Pick<Cgroup, 'pids' | 'processCount'>): { processes: number; fresh: number; replaced: number } {
    const count = cgroup.processCount()
    const pids = count < this.from ? [] : cgroup.pids()
    // Threads are in the first count and not in this one.
    const isKnown = this.#last.size > 0
    const fresh = isKnown ? pids.filter((pid) => !this.#last.has(pid)).length : 0
    const ended = isKnown ? this.#last.size - (pids.length - fresh) : 0
    this.#last = new Set(pids)
    return { processes: pids.length, fresh, replaced: Math.min(fresh, ended) }
  }
}
