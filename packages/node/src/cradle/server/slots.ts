import type { ChildProcess } from 'node:child_process'
import { spawnLauncher } from './cell-run.js'
import { Cgroup, type CgroupSupport } from './cgroups.js'
import { nativeLauncher } from './launch-command.js'

/** A pod's control group with, where one was kept ready, a launcher that is already in the group of its first cell. */
export interface Slot {
  cgroup: Cgroup
  first: { cgroup: Cgroup; launcher: ChildProcess } | undefined
}

export interface SlotsOptions {
  cgroups: CgroupSupport
  /** The compiled supervisor; without it nothing is kept ready. */
  launcherPath: string | undefined
  socketDirectory: string
  spares: number
}

const refillAfterMs = 40

/**
 * Groups for pods, a few of them prepared ahead: a process that joins a group waits for a grace period of the kernel,
 * often longer than all the rest of a cell's start. Taken slots are replaced a moment later, out of the way of the
 * start they were taken for.
 */
export class Slots {
  readonly #spares: Slot[] = []
  #next = 0
  #isClosed = false
  #refill: NodeJS.Timeout | undefined

  constructor(private readonly options: SlotsOptions) {
    this.#refillSoon()
  }

  take(): Slot {
    const spare = this.#spares.shift()
    this.#refillSoon()
    const launcher = spare?.first?.launcher
    if (spare && launcher && launcher.exitCode === null && launcher.signalCode === null) return spare
    return { cgroup: this.#newGroup(), first: undefined }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#refill)
    await Promise.all(this.#spares.splice(0).map(discard))
  }

  #newGroup(): Cgroup {
    return new Cgroup(this.options.cgroups, `slot-${process.pid.toString(36)}-${this.#next++}`)
  }

  #refillSoon(): void {
    const { launcherPath, cgroups, spares } = this.options
    if (this.#isClosed || launcherPath === undefined || cgroups.hierarchies.length === 0) return
    clearTimeout(this.#refill)
    this.#refill = setTimeout(() => {
      if (this.#spares.length >= spares) return
      this.#spares.push(this.#prepare(launcherPath))
      this.#refillSoon()
    }, refillAfterMs)
  }

  #prepare(launcherPath: string): Slot {
    const cgroup = this.#newGroup()
    const first = cgroup.child('first')
    cgroup.create({}, { hasChildren: true })
    first.create({}, { hasChildren: false })
    const launcher = spawnLauncher(nativeLauncher(launcherPath, first.joinFiles(), this.options.socketDirectory))
    launcher.on('error', () => {
      // No pod uses a spare yet: `take` sees that it has ended.
    })
    return { cgroup, first: { cgroup: first, launcher } }
  }
}

/** Lets an unused slot go: an empty description ends its launcher. */
export async function discard({ cgroup, first }: Slot): Promise<void> {
  first?.launcher.stdin?.destroy()
  await cgroup.kill()
  cgroup.remove()
}
