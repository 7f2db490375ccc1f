import type { OomReport } from '../../isolation/isolation.js'

/** A running cell whose kills are counted. */
export interface CountedCell {
  podUid: string
  key: string
  /** Kills since the cell started. */
  oomKills(): number
}

export interface OomWatchOptions {
  cells(): Iterable<CountedCell>
  onReport(report: OomReport): void
  now(): Date
  /** How often the counters of the kernel are read: with control groups of version 1 it sends no notice of a change. */
  everyMs: number
}

/** Notices that the kernel ended a process of a pod for want of memory, also where its container goes on. */
export class OomWatch {
  readonly #seen = new Map<string, number>()
  readonly #reports = new Map<string, OomReport>()
  readonly #timer: NodeJS.Timeout

  constructor(private readonly options: OomWatchOptions) {
    this.#timer = setInterval(() => this.look(), options.everyMs).unref()
  }

  /** The pods of which something was killed. */
  get reports(): OomReport[] {
    return [...this.#reports.values()]
  }

  /** Reads the counters of every cell once. */
  look(): void {
    for (const { podUid, key, oomKills } of this.options.cells()) {
      const kills = oomKills()
      const fresh = kills - (this.#seen.get(key) ?? 0)
      if (fresh <= 0) continue
      this.#seen.set(key, kills)
      const before = this.#reports.get(podUid)?.kills ?? 0
      const report = { podUid, kills: before + fresh, lastAt: this.options.now().toISOString() }
      this.#reports.set(podUid, report)
      this.options.onReport(report)
    }
  }

  forget(podUid: string, keys: readonly string[]): void {
    this.#reports.delete(podUid)
    for (const key of keys) this.#seen.delete(key)
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
