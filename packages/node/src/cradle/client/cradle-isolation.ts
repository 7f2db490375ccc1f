import { resolve as absolute, join } from 'node:path'
import { type Logger, silentLogger } from '@corral/ports'
import type {
  BrakeReason,
  Cell,
  CellExit,
  Isolation,
  LaunchPlan,
  NetworkReport,
  OneShotCommand,
  OomReport,
  PodLimits,
  PodPlan,
  PodReach,
  ProbeReport,
  SnapshotAttachment,
} from '../../isolation/isolation.js'
import { IsolationError } from '../../isolation/isolation-error.js'
import {
  type CellKey,
  type CellRecord,
  type CradleConfig,
  type CradleRequest,
  cellKeyText,
  cradleProtocolVersion,
  type SupervisorProgram,
} from '../protocol/messages.js'
import { CradleCell } from './cradle-cell.js'
import { CradleClient } from './cradle-client.js'
import { killCradle, prepareDataDirectory, startCradle } from './cradle-process.js'

export interface CradleIsolationOptions {
  dataDir: string
  tier: CradleConfig['tier']
  nodePath: string
  cradleEntry: string
  supervisor: () => SupervisorProgram
  /** Asked for at each start of a cradle. */
  tierOptions: () => CradleConfig['tierOptions']
  /** Ports of a pod without a network of its own may stand for unix sockets in its directory. */
  mapsPortsToSockets: boolean
  confine?: (command: OneShotCommand) => string[]
  idleShutdownMs: number
  probe: () => Promise<ProbeReport>
  log?: Logger
}

/** A cradle that hangs is killed after this long, and its cells end with it. */
const drainTimeoutMs = 20_000
const closingCallMs = 2_000
/** Longer than a cradle takes to start or to end its pods on a busy machine. */
const hungCradleMs = 60_000
const nextLookMs = 100

/** Any tier whose cells live in a cradle. The cradle is found or started on first use. */
export class CradleIsolation implements Isolation {
  readonly tier: CradleConfig['tier']
  readonly confine?: (command: OneShotCommand) => string[]
  readonly #dataDir: string
  readonly #cradleDirectory: string
  readonly #log: Logger
  readonly #cells = new Map<string, CradleCell>()
  /** Ends that arrived before the launch that belongs to them was answered. */
  readonly #earlyExits = new Map<string, CellExit>()
  #client: Promise<CradleClient> | undefined
  #networkListener: ((report: NetworkReport) => void) | undefined
  #oomListener: ((report: OomReport) => void) | undefined
  #brakeListener: ((podUid: string, reason: BrakeReason) => void) | undefined
  #isClosed = false
  #keepUntilMs = 0

  constructor(private readonly options: CradleIsolationOptions) {
    this.tier = options.tier
    if (options.confine) this.confine = options.confine
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

  warmUp(): void {
    if (this.#client) return
    const opening = this.#open()
    this.#client = opening
    opening.catch(() => {
      // The first call tries again and tells what is wrong.
      if (this.#client === opening) this.#client = undefined
    })
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

  async setNetwork(podUid: string, network: PodReach): Promise<{ restricted: boolean }> {
    return await this.#call({ op: 'setNetwork', podUid, network })
  }

  async attachSnapshot(podUid: string, snapshot: SnapshotAttachment): Promise<void> {
    const answer = await this.#call<object | null>({ op: 'attachSnapshot', podUid, snapshot })
    if (answer === null)
      throw new IsolationError('Unsupported', 'the pod was started by an earlier version that knows no snapshots')
  }

  async setLimits(podUid: string, limits: PodLimits): Promise<{ enforced: boolean }> {
    const answer = await this.#call<{ enforced: boolean } | null>({ op: 'setLimits', podUid, limits })
    if (answer === null)
      throw new IsolationError('Unsupported', 'the pod was started by an earlier version that cannot change its limits')
    return answer
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

  watchNetwork(listener: (report: NetworkReport) => void): void {
    this.#networkListener = listener
    void this.#client?.then((client) => this.#tellNetwork(client)).catch(() => {}) // who opens the client sees why not
  }

  watchBraked(listener: (podUid: string, reason: BrakeReason) => void): void {
    this.#brakeListener = listener
  }

  watchOomKills(listener: (report: OomReport) => void): void {
    this.#oomListener = listener
    void this.#client?.then((client) => this.#tellOomKills(client)).catch(() => {}) // as above
  }

  async releasePod(podUid: string): Promise<void> {
    await this.#call({ op: 'releasePod', podUid })
  }

  async keepUntil(time: Date | undefined): Promise<void> {
    this.#keepUntilMs = time?.getTime() ?? 0
    // Without a connection there is nothing to keep yet; the next one is told first.
    const client = await this.#client?.catch(() => undefined)
    await client?.call({ op: 'keep', untilMs: this.#keepUntilMs }).catch(() => undefined)
  }

  async announceEnd(): Promise<void> {
    const client = await this.#client?.catch(() => undefined)
    await client?.call({ op: 'endWithMain' }, closingCallMs).catch(() => undefined)
  }

  async close({ endPods }: { endPods: boolean }): Promise<void> {
    if (this.#isClosed) return
    const client = await this.#client?.catch(() => undefined)
    this.#isClosed = true
    const running = client ?? (endPods ? await this.#connect() : undefined)
    if (!running) return
    // A cradle without pods is ended, so that a command that only looked leaves no process behind.
    const holdsNothing = async (): Promise<boolean> =>
      (await running.call<CellRecord[]>({ op: 'list' }, closingCallMs)).length === 0
    if (endPods || (await holdsNothing().catch(() => false))) await this.#drain(running)
    else running.close()
  }

  async #call<T>(request: CradleRequest): Promise<T> {
    if (this.#isClosed) throw new IsolationError('CradleUnavailable', 'this isolation has been closed')
    this.#client ??= this.#open()
    const opening = this.#client
    let client: CradleClient | undefined
    try {
      client = await opening
      return await client.call<T>(request)
    } catch (error) {
      // One that is slow to answer is still the one that holds the cells.
      if (this.#client === opening && (client?.isClosed ?? true)) this.#client = undefined
      throw error
    }
  }

  async #open(): Promise<CradleClient> {
    const client = await this.#findOrStart()
    if (this.#keepUntilMs > 0) await client.call({ op: 'keep', untilMs: this.#keepUntilMs })
    return client
  }

  async #findOrStart(): Promise<CradleClient> {
    const beganMs = Date.now()
    for (let isKilled = false; ; ) {
      const client = (await this.#find()) ?? (await this.#start())
      if (client) return client
      // There is one that does not answer: it starts, it ends, or it hangs.
      const waitedMs = Date.now() - beganMs
      if (waitedMs > hungCradleMs && !isKilled) {
        this.#log.error('the cradle does not answer and is killed')
        killCradle(this.#cradleDirectory)
        isKilled = true
      } else if (waitedMs > 2 * hungCradleMs) {
        throw new IsolationError(
          'CradleUnavailable',
          'another process is the cradle of this directory and does not answer',
        )
      }
      await new Promise((next) => setTimeout(next, nextLookMs))
    }
  }

  /** The one that runs, unless it is of another kind; that one is ended. */
  async #find(): Promise<CradleClient | undefined> {
    const found = await this.#connect()
    if (!found) return undefined
    const { version, tier } = found.hello
    if (version === cradleProtocolVersion && tier === this.tier) {
      void this.#tellNetwork(found)
      return found
    }
    this.#log.info('draining a cradle of another kind', { version, tier })
    await this.#drain(found)
    return undefined
  }

  /** Undefined where another one has the directory. */
  async #start(): Promise<CradleClient | undefined> {
    prepareDataDirectory(this.#dataDir)
    const { nodePath, cradleEntry, tierOptions, idleShutdownMs, supervisor } = this.options
    const config: CradleConfig = {
      dataDir: this.#dataDir,
      tier: this.tier,
      supervisor: supervisor(),
      tierOptions: tierOptions(),
      idleShutdownMs,
    }
    const pid = await startCradle({ nodePath, entry: cradleEntry, config })
    if (pid === undefined) return undefined
    this.#log.info('cradle started', { pid, tier: this.tier })
    const client = await this.#connect()
    if (!client) throw new IsolationError('CradleUnavailable', 'the cradle does not accept connections')
    return client
  }

  #connect(): Promise<CradleClient | undefined> {
    return CradleClient.connect(this.#cradleDirectory, {
      onExit: ({ cell, exit }) => this.#ended(cell, exit),
      onNetwork: (report) => this.#networkListener?.(report),
      onOom: (report) => this.#oomListener?.(report),
      onBraked: (podUid, reason) => this.#brakeListener?.(podUid, reason),
      onLost: () => this.#lost(),
    })
  }

  /** What was refused while no main listened. Nothing depends on it: a cradle that does not answer is noticed elsewhere. */
  async #tellNetwork(client: CradleClient): Promise<void> {
    const reports = await client.call<NetworkReport[] | null>({ op: 'networkReports' }).catch(() => null)
    for (const report of reports ?? []) this.#networkListener?.(report)
  }

  async #tellOomKills(client: CradleClient): Promise<void> {
    const reports = await client.call<OomReport[] | null>({ op: 'oomReports' }).catch(() => null)
    for (const report of reports ?? []) this.#oomListener?.(report)
  }

  /** Ends a cradle with all its pods, whatever version it speaks, and waits until it is gone. */
  async #drain(client: CradleClient): Promise<void> {
    const deadline = Date.now() + drainTimeoutMs
    await client.call({ op: 'shutdown' }, drainTimeoutMs).catch(() => undefined)
    client.close()
    while (isAlive(client.hello.pid) && Date.now() < deadline) await new Promise((next) => setTimeout(next, 5))
    if (!isAlive(client.hello.pid)) return
    this.#log.error('the cradle did not end and is killed', { pid: client.hello.pid })
    process.kill(client.hello.pid, 'SIGKILL')
  }

  #cellFor(record: CellRecord): CradleCell {
    const key = cellKeyText(record)
    const known = this.#cells.get(key)
    if (known) return known
    const cell = new CradleCell(record, {
      cradleDirectory: this.#cradleDirectory,
      mapsPortsToSockets: this.options.mapsPortsToSockets,
      call: (request) => this.#call(request),
    })
    // No news of it will come, and the same attempt may be launched again once its end is acknowledged.
    if (record.exit) return cell
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
    this.#earlyExits.clear()
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
