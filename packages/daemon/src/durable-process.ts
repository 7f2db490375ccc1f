import { spawn } from 'node:child_process'
import { stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Logger } from '@corral/ports'
import { CorralError, type ProcessExitRecord, type ProcessRecord, type SignalName } from '@corral/protocol'
import { ChangeNotice } from './change-notice.js'
import { DirectoryWatch } from './directory-watch.js'
import { exitRecord, lostRecord, parseExitStatus } from './exit-status.js'
import { countOomKills } from './oom-kills.js'
import { type OutputCursor, OutputLog } from './output-log.js'
import type { ProcessHandle } from './process-handle.js'
import { type ProcessMeta, readFinal, readIfPresent, readPid, writeFinal } from './record-files.js'
import { isWrapperAlive, killGroup } from './signals.js'
import { writeToFifo } from './stdin-fifo.js'

export interface DurablePorts {
  readonly clock: Clock
  readonly log: Logger
}

/** How long output may still trickle in after the end, when a background child holds the pipes open. */
const drainMs = 1_000
const startTimeoutMs = 20_000

/**
 * A process that a shell wrapper keeps, not the daemon: everything known about it is read from its directory, so a new
 * daemon continues where the old one stopped. The end is fixed once, in `final.json`.
 */
export class DurableProcess implements ProcessHandle {
  readonly changed: ChangeNotice = new ChangeNotice()
  readonly #directory: string
  readonly #meta: ProcessMeta
  readonly #output: OutputLog
  readonly #ports: DurablePorts
  #watch: DirectoryWatch | undefined
  #pid: number | undefined
  #exit: ProcessExitRecord | undefined
  #finalBytes: number | undefined
  /** The wrapper's own exit status, where we are its parent: it tells the end even when the disk is full. */
  #wrapperStatus: number | undefined
  #exitSeenMs: number | undefined
  #isDiskFull = false

  private constructor(directory: string, meta: ProcessMeta, output: OutputLog, ports: DurablePorts) {
    this.#directory = directory
    this.#meta = meta
    this.#output = output
    this.#ports = ports
  }

  /** Starts the wrapper and resolves once the payload runs, or has already ended. */
  static async start(
    directory: string,
    meta: ProcessMeta,
    script: string,
    env: NodeJS.ProcessEnv,
    ports: DurablePorts,
  ): Promise<DurableProcess> {
    for (const stream of ['stdout', 'stderr']) await writeFile(join(directory, stream), '', { mode: 0o600 })
    const killsBefore = await countOomKills()
    if (killsBefore !== undefined) await writeFile(join(directory, 'oom-kills'), String(killsBefore), { mode: 0o600 })
    const self = new DurableProcess(directory, meta, await OutputLog.open(directory), ports)
    const wrapper = spawn('/bin/sh', ['-c', script, 'corral-process', directory, meta.stdin, ...meta.argv], {
      cwd: meta.cwd,
      env,
      detached: true,
      stdio: 'ignore',
    })
    wrapper.unref()
    wrapper.once('error', (error) => {
      ports.log.error('process wrapper failed', { id: meta.id, error: error.message })
      self.#wrapperStatus = 126
      self.#watch?.trigger()
    })
    wrapper.once('exit', (code) => {
      self.#wrapperStatus = code ?? 137
      self.#watch?.trigger()
    })
    self.#follow()
    await self.#untilStarted()
    return self
  }

  /** Picks up a record that an earlier daemon left, running or ended. */
  static async recover(directory: string, meta: ProcessMeta, ports: DurablePorts): Promise<DurableProcess> {
    const self = new DurableProcess(directory, meta, await OutputLog.open(directory), ports)
    const final = await readFinal(directory)
    self.#pid = await readPid(directory, 'pid')
    if (final) {
      self.#exit = final.exit
      self.#finalBytes = final.output_bytes
    } else {
      self.#follow()
    }
    return self
  }

  record(): ProcessRecord {
    return {
      ...this.#meta,
      ...(this.#pid === undefined ? {} : { pid: this.#pid }),
      output_bytes: this.#finalBytes ?? this.#output.length,
      ...(this.#exit ? { exit: this.#exit } : {}),
    }
  }

  cursor(offset: number): Promise<OutputCursor> {
    return this.#output.cursor(offset)
  }

  async writeStdin(chunks: AsyncIterable<Uint8Array>, eof: boolean, signal: AbortSignal): Promise<void> {
    this.#requireRunning()
    const keeper = await readPid(this.#directory, 'keeper')
    const isClosed = (await readIfPresent(join(this.#directory, 'stdin-closed'))) !== undefined
    if (this.#meta.stdin === 'null' || isClosed || keeper === undefined) {
      throw new CorralError('StdinClosed', `the standard input of process "${this.#meta.id}" is closed`)
    }
    await writeToFifo(join(this.#directory, 'in'), chunks, signal)
    if (!eof) return
    await writeFile(join(this.#directory, 'stdin-closed'), '')
    try {
      process.kill(keeper, 'SIGKILL')
    } catch {
      // The process ended meanwhile and took its keeper along.
    }
  }

  kill(signal: SignalName, group: boolean): void {
    this.#requireRunning()
    if (this.#pid === undefined) throw new CorralError('ProcessExited', `process "${this.#meta.id}" did not start`)
    if (!killGroup(this.#pid, signal, group)) {
      throw new CorralError('ProcessExited', `process "${this.#meta.id}" has ended`)
    }
  }

  resize(): void {
    throw new CorralError('NotATerminal', `process "${this.#meta.id}" has no terminal`)
  }

  async detach(): Promise<void> {
    this.#watch?.stop()
    await this.#watch?.idle()
    await this.#output.close()
    this.changed.notify()
  }

  #follow(): void {
    this.#watch = new DirectoryWatch(this.#directory, () => this.#look())
    this.#watch.trigger()
  }

  async #look(): Promise<void> {
    try {
      this.#pid ??= await readPid(this.#directory, 'pid')
      // Before the output is measured, so that what was written before the end is part of it.
      const exit = await this.#isOver()
      const hasGrown = await this.#observe()
      if (exit) await this.#finish(exit)
      if (hasGrown || exit) this.changed.notify()
    } catch (error) {
      this.#ports.log.error('process record unreadable', { id: this.#meta.id, error: String(error) })
    }
  }

  /** A disk too full for the index hides output, but not the end of the process. */
  async #observe(): Promise<boolean> {
    try {
      return await this.#output.observe()
    } catch (error) {
      if (!this.#isDiskFull) this.#ports.log.error('output not indexed', { id: this.#meta.id, error: String(error) })
      this.#isDiskFull = true
      return false
    }
  }

  /** The exit, once it is known and the output has drained or had its time to. */
  async #isOver(): Promise<ProcessExitRecord | undefined> {
    const exit = await this.#readExit()
    if (!exit) return undefined
    const isDrained = (await readIfPresent(join(this.#directory, 'drained'))) !== undefined
    if (isDrained || this.#wrapperStatus !== undefined) return exit
    const now = performance.now()
    if (this.#exitSeenMs === undefined) {
      this.#exitSeenMs = now
      setTimeout(() => this.#watch?.trigger(), drainMs + 1).unref()
    }
    return now - this.#exitSeenMs >= drainMs ? exit : undefined
  }

  /** By the wrapper's file, by its own exit status where we are its parent, or by its absence. */
  async #readExit(): Promise<ProcessExitRecord | undefined> {
    const { clock } = this.#ports
    const written = await this.#writtenExit()
    if (written) return written
    if (this.#wrapperStatus !== undefined) return exitRecord(this.#wrapperStatus, clock.now())
    const wrapper = await readPid(this.#directory, 'wrapper')
    if (wrapper === undefined || isWrapperAlive(wrapper, this.#directory)) return undefined
    // The wrapper may have written its last words between the two looks.
    return (await this.#writtenExit()) ?? lostRecord('the process and its wrapper were killed', clock.now())
  }

  async #writtenExit(): Promise<ProcessExitRecord | undefined> {
    const path = join(this.#directory, 'exit')
    const status = parseExitStatus((await readIfPresent(path)) ?? '')
    return status === undefined ? undefined : exitRecord(status, (await stat(path)).mtime)
  }

  async #finish(seen: ProcessExitRecord): Promise<void> {
    this.#watch?.stop()
    const exit = { ...seen, ...(await this.#oomKills()) }
    const output_bytes = this.#output.length
    try {
      await writeFinal(this.#directory, { exit, output_bytes })
    } catch (error) {
      // The end is still told to those who ask now.
      this.#isDiskFull = true
      this.#ports.log.error('process end not recorded', { id: this.#meta.id, error: String(error) })
    }
    this.#finalBytes = output_bytes
    this.#exit = this.#isDiskFull ? { ...exit, message: 'the disk of the sandbox is full' } : exit
    this.#ports.log.info('process ended', { id: this.#meta.id, exitCode: exit.exit_code })
  }

  /** Kills of the kernel since the process started; nothing where the sandbox does not see its counters. */
  async #oomKills(): Promise<{ oom_kills?: number }> {
    const before = await readIfPresent(join(this.#directory, 'oom-kills'))
    const now = before ? await countOomKills() : undefined
    return now === undefined ? {} : { oom_kills: Math.max(0, now - Number(before)) }
  }

  async #untilStarted(): Promise<void> {
    const deadlineMs = performance.now() + startTimeoutMs
    while (this.#pid === undefined && this.#exit === undefined) {
      const leftMs = deadlineMs - performance.now()
      if (leftMs <= 0) throw new CorralError('Timeout', `process "${this.#meta.id}" did not start in time`)
      this.#watch?.trigger()
      await this.changed.wait(Math.min(leftMs, 5))
    }
  }

  #requireRunning(): void {
    if (this.#exit) throw new CorralError('ProcessExited', `process "${this.#meta.id}" has ended`)
  }
}
