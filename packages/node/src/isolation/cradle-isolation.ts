import { resolve as absolute, join } from 'node:path'
import { type Logger, silentLogger } from '@corral/resources'
import {
  type CellKey,
  type CellRecord,
  type CradleConfig,
  type CradleRequest,
  cellKeyText,
  cradleProtocolVersion,
  type SupervisorProgram,
} from '../cradle/protocol.js'
import { CradleCell } from './cradle-cell.js'
import { CradleClient } from './cradle-client.js'
import { prepareDataDirectory, startCradle } from './cradle-process.js'
import type { Cell, CellExit, Isolation, LaunchPlan, PodPlan, ProbeReport } from './isolation.js'
import { IsolationError } from './isolation-error.js'

export interface CradleIsolationOptions {
  dataDir: string
  tier: CradleConfig['tier']
  nodePath: string
  cradleEntry: string
  supervisor: () => SupervisorProgram
  bwrapPath?: string
  disableUserns: () => boolean
  lonelyAfterMs: number
  probe: () => Promise<ProbeReport>
  log?: Logger
}

const drainTimeoutMs = 20_000

/** Any tier whose cells live in a cradle. The cradle is found or started on first use. */
export class CradleIsolation implements Isolation {
  readonly tier: CradleConfig['tier']
  readonly #dataDir: string
  readonly #cradleDirectory: string
  readonly #log: Logger
  readonly #cells = new Map<string, CradleCell>()
  /** Ends that arrived before the launch that belongs to them was answered. */
  readonly #earlyExits = new Map<string, CellExit>()
  #client: Promise<CradleClient> | undefined
  #isClosed = false

  constructor(private readonly options: CradleIsolationOptions) {
    this.tier = options.tier
    this.#dataDir = absolute(options.dataDir)
    this.#cradleDirectory = join(this.#dataDir, 'cradle')
    this.#log = options.log ?? silentLogger
  }

  probe(): Promise<ProbeReport> {
    return this.options.probe()
  }

  /** How much of a pod's limits the cradle can hold it to. */
  async limits(): Promise<ProbeReport['limits']> {
    this.#client ??= this.#open()
    return (await this.#client).hello.limits
  }

  /** Ends a cradle that holds nothing, so that the next call starts one with the options of then. */
  async restartIfIdle(): Promise<void> {
    if ((await this.#call<CellRecord[]>({ op: 'list' })).length > 0) return
    const client = await this.#client
    this.#client = undefined
    if (client) await this.#drain(client)
  }

  async preparePod(plan: PodPlan): Promise<void> {
    await this.#call({ op: 'preparePod', pod: plan })
  }

  async launch(plan: LaunchPlan): Promise<Cell> {
    const record = await this.#call<CellRecord>({ op: 'launch', plan })
    return this.#cellFor(record)
  }

  async adopt(): Promise<Cell[]> {
    const records = await this.#call<CellRecord[]>({ op: 'list' })
    const cells = records.map((record) => this.#cellFor(record))
    const ended = records.filter(({ exit }) => exit !== undefined)
    await Promise.all(ended.map((record) => this.#acknowledge(record)))
    return cells
  }

  async releasePod(podUid: string): Promise<void> {
    await this.#call({ op: 'releasePod', podUid })
  }

  async close({ endPods }: { endPods: boolean }): Promise<void> {
    if (this.#isClosed) return
    const client = await this.#client?.catch(() => undefined)
    this.#isClosed = true
    const running = client ?? (endPods ? await this.#connect() : undefined)
    if (!running) return
    // A cradle that holds nothing has nothing to hand on: whoever only looked leaves no process behind.
    const holdsNothing = async (): Promise<boolean> => (await running.call<CellRecord[]>({ op: 'list' })).length === 0
    if (endPods || (await holdsNothing().catch(() => false))) await this.#drain(running)
    else running.close()
  }

  async #call<T>(request: CradleRequest): Promise<T> {
    if (this.#isClosed) throw new IsolationError('CradleUnavailable', 'this isolation has been closed')
    this.#client ??= this.#open()
    const opening = this.#client
    try {
      return await (await opening).call<T>(request)
    } catch (error) {
      if (error instanceof IsolationError && error.code === 'CradleUnavailable' && this.#client === opening) {
        this.#client = undefined
      }
      throw error
    }
  }

  async #open(): Promise<CradleClient> {
    const found = await this.#connect()
    if (found) {
      const { version, tier } = found.hello
      if (version === cradleProtocolVersion && tier === this.tier) return found
      this.#log.info('draining a cradle of another kind', { version, tier })
      await this.#drain(found)
    }
    prepareDataDirectory(this.#dataDir)
    const { nodePath, cradleEntry, bwrapPath, disableUserns, lonelyAfterMs, supervisor } = this.options
    const config: CradleConfig = {
      dataDir: this.#dataDir,
      tier: this.tier,
      supervisor: supervisor(),
      disableUserns: disableUserns(),
      lonelyAfterMs,
      ...(bwrapPath === undefined ? {} : { bwrapPath }),
    }
    const pid = await startCradle({ nodePath, entry: cradleEntry, config })
    this.#log.info('cradle started', { pid, tier: this.tier })
    const client = await this.#connect()
    if (!client) throw new IsolationError('CradleUnavailable', 'the cradle does not accept connections')
    return client
  }

  #connect(): Promise<CradleClient | undefined> {
    return CradleClient.connect(this.#cradleDirectory, {
      onExit: ({ cell, exit }) => this.#ended(cell, exit),
      onLost: () => this.#lost(),
    })
  }

  /** Ends a cradle with all its pods, whatever version it speaks, and waits until it is gone. */
  async #drain(client: CradleClient): Promise<void> {
    const deadline = Date.now() + drainTimeoutMs
    await client.call({ op: 'shutdown' }).catch(() => undefined)
    client.close()
    while (isAlive(client.hello.pid) && Date.now() < deadline) await new Promise((next) => setTimeout(next, 5))
  }

  #cellFor(record: CellRecord): CradleCell {
    const key = cellKeyText(record)
    const known = this.#cells.get(key)
    if (known) return known
    const cell = new CradleCell(record, {
      cradleDirectory: this.#cradleDirectory,
      mapsPortsToSockets: this.tier === 'process',
      call: (request) => this.#call(request),
    })
    this.#cells.set(key, cell)
    const early = this.#earlyExits.get(key)
    if (early) this.#ended(record, early)
    return cell
  }

  #ended(key: CellKey, exit: CellExit): void {
    const text = cellKeyText(key)
    const cell = this.#cells.get(text)
    if (!cell) {
      this.#earlyExits.set(text, exit)
      return
    }
    this.#earlyExits.delete(text)
    this.#cells.delete(text)
    cell.settle(exit)
    void this.#acknowledge(key)
  }

  #acknowledge({ podUid, container, attempt }: CellKey): Promise<void> {
    const request: CradleRequest = { op: 'acknowledge', cell: { podUid, container, attempt } }
    // Unheard it is repeated: the next adoption reports the same end once more.
    return this.#call<void>(request).catch(() => undefined)
  }

  #lost(): void {
    this.#client = undefined
    const finishedAt = new Date().toISOString()
    for (const cell of this.#cells.values()) {
      const { startedAt } = cell
      cell.settle({ exitCode: 137, signal: 9, oomKilled: false, startedAt, finishedAt, lost: true })
    }
    this.#cells.clear()
    if (!this.#isClosed) this.#log.warn('the cradle is gone and its cells with it')
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
