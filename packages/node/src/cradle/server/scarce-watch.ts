import { readdirSync, readFileSync } from 'node:fs'
import { supervisorOf } from './side-processes.js'

/** A container that may hold some of what the kernel has one number of for the whole machine. */
export interface Holder {
  podUid: string
  key: string
  held(): number
  /** Ends everything but its main process. */
  halt(): Promise<void>
  kill(): Promise<void>
}

export interface ScarceWatchOptions {
  holders(): Iterable<Holder>
  /** How many of the machine are taken, and how many sandboxes can have in all. */
  machine(): { used: number; all: number }
  /** More than a container has a use for, as long as they are scarce. */
  fair: number
  onEnded(podUid: string): void
  everyMs: number
}

/**
 * Ends what holds an unfair part of something while less than half of it is left. The kernel has one number for all of
 * terminals (`kernel.pty.max`, 4096) and of open files (`fs.file-max`), of which one pod may take every one; then no other
 * sandbox gets a terminal, or opens a file.
 */
export class ScarceWatch {
  readonly #halted = new Set<string>()
  readonly #timer: NodeJS.Timeout
  #isBusy = false

  constructor(private readonly options: ScarceWatchOptions) {
    this.#timer = setInterval(() => void this.look(), options.everyMs).unref()
  }

  async look(): Promise<void> {
    const { used, all } = this.options.machine()
    if (this.#isBusy || used * 2 < all) return
    this.#isBusy = true
    try {
      for (const holder of [...this.options.holders()]) if (holder.held() > this.options.fair) await this.#end(holder)
    } finally {
      this.#isBusy = false
    }
  }

  /** Where its main process has them, ending the others does not help: then all of it ends. */
  async #end(holder: Holder): Promise<void> {
    this.options.onEnded(holder.podUid)
    if (this.#halted.has(holder.key)) return await holder.kill()
    this.#halted.add(holder.key)
    await holder.halt()
  }

  forget(keys: readonly string[]): void {
    for (const key of keys) this.#halted.delete(key)
  }

  close(): void {
    clearInterval(this.#timer)
  }
}

/** Those a cell has, in the file system of its own. */
export function terminalsOf(launcher: number | undefined): number {
  const first = launcher === undefined ? undefined : supervisorOf(launcher)
  if (!first) return 0
  try {
    return readdirSync(`/proc/${first.pid}/root/dev/pts`).filter((name) => name !== 'ptmx').length
  } catch {
    return 0 // It has ended, or has none.
  }
}

export function machineTerminals(directory = '/proc/sys/kernel/pty'): { used: number; all: number } {
  const read = (name: string): number => Number(readFileSync(`${directory}/${name}`, 'utf8'))
  try {
    // The reserve is for the machine's own file system of terminals.
    return { used: read('nr'), all: Math.max(1, read('max') - read('reserve')) }
  } catch {
    return { used: 0, all: 1 } // The kernel does not tell.
  }
}

/** Open files of these processes; one that several share counts for each. */
export function openFilesOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + openFiles(pid), 0)
}

function openFiles(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return 0 // It has ended, or belongs to another user.
  }
}

export function machineFiles(file = '/proc/sys/fs/file-nr'): { used: number; all: number } {
  try {
    const [used = 0, , all = 0] = readFileSync(file, 'utf8').trim().split(/\s+/).map(Number)
    return { used, all: Math.max(1, all) }
  } catch {
    return { used: 0, all: 1 } // The kernel does not tell.
  }
}
