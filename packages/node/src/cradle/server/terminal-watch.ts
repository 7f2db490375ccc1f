import { readdirSync, readFileSync } from 'node:fs'
import { supervisorOf } from './side-processes.js'

/** A container that may hold terminals. */
export interface TerminalHolder {
  podUid: string
  key: string
  terminals(): number
  /** Ends everything but its main process. */
  halt(): Promise<void>
  kill(): Promise<void>
}

export interface TerminalWatchOptions {
  holders(): Iterable<TerminalHolder>
  /** How many terminals of the machine are open, and how many sandboxes can have in all. */
  machine(): { used: number; all: number }
  onEnded(podUid: string): void
  everyMs: number
}

/** More than a container has a use for, as long as they are scarce. */
const fairTerminals = 256

/**
 * Ends what holds hundreds of terminals while few are left. The kernel has one number for all (`kernel.pty.max`, 4096), of
 * which one process may take every one; then no other sandbox gets a terminal.
 */
export class TerminalWatch {
  readonly #halted = new Set<string>()
  readonly #timer: NodeJS.Timeout
  #isBusy = false

  constructor(private readonly options: TerminalWatchOptions) {
    this.#timer = setInterval(() => void this.look(), options.everyMs).unref()
  }

  async look(): Promise<void> {
    const { used, all } = this.options.machine()
    if (this.#isBusy || used * 2 < all) return
    this.#isBusy = true
    try {
      for (const holder of [...this.options.holders()]) if (holder.terminals() > fairTerminals) await this.#end(holder)
    } finally {
      this.#isBusy = false
    }
  }

  /** Where its main process has them, ending the others does not help: then all of it ends. */
  async #end(holder: TerminalHolder): Promise<void> {
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
