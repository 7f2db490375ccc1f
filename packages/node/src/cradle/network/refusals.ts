import type { RefusedHost } from '@corral/resources'
import type { NetworkReport } from '../../isolation/isolation.js'

export interface RefusalsOptions {
  podUid: string
  now: () => Date
  /** Hears of a change, at once the first time and then at most once in `everyMs`. */
  onChange(report: NetworkReport): void
  everyMs?: number
}

const mostHosts = 32
/** Where the resolver of a pod tries a short name first: a program asked for the name in front of it. */
const searchDomain = '.cluster.local'

/** What a pod wanted from the network and did not get: a short list and counts, whatever the pod does. */
export class Refusals {
  readonly #hosts = new Map<string, RefusedHost>()
  #others = 0
  #connections = 0
  #connectionLimit: NetworkReport['connectionLimit']
  #timer: NodeJS.Timeout | undefined
  #isDirty = false

  constructor(private readonly options: RefusalsOptions) {}

  /** Undefined while nothing was refused. */
  get report(): NetworkReport | undefined {
    if (this.#hosts.size === 0 && this.#connections === 0) return undefined
    return {
      podUid: this.options.podUid,
      refused: [...this.#hosts.values()],
      otherHosts: this.#others,
      refusedConnections: this.#connections,
      ...(this.#connectionLimit ? { connectionLimit: this.#connectionLimit } : {}),
    }
  }

  /** Whether this name was refused before. */
  knows(host: string): boolean {
    return this.#hosts.has(`${host}:`) || host.endsWith(searchDomain) || this.#hosts.size >= mostHosts
  }

  host(host: string, reason: RefusedHost['reason'], port?: number, process?: string): void {
    if (host.endsWith(searchDomain)) return
    const at = this.options.now().toISOString()
    const key = `${host}:${port ?? ''}`
    const known = this.#hosts.get(key)
    if (known) {
      this.#hosts.set(key, { ...known, reason, count: known.count + 1, lastAt: at })
    } else if (this.#hosts.size < mostHosts) {
      const more = { ...(port === undefined ? {} : { port }), ...(process ? { process } : {}) }
      this.#hosts.set(key, { host, ...more, reason, count: 1, firstAt: at, lastAt: at })
    } else {
      this.#others++
    }
    this.#changed()
  }

  connection(limit: NonNullable<NetworkReport['connectionLimit']>): void {
    this.#connections++
    this.#connectionLimit = limit
    this.#changed()
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#isDirty = false
  }

  #changed(): void {
    this.#isDirty = true
    if (this.#timer === undefined) this.#tell()
  }

  #tell(): void {
    this.#timer = undefined
    const { report } = this
    if (!this.#isDirty || !report) return
    this.#isDirty = false
    this.#timer = setTimeout(() => this.#tell(), this.options.everyMs ?? 1_000)
    this.#timer.unref()
    this.options.onChange(report)
  }
}
