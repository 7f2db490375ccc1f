import { mkdirSync, rmdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Cgroup, type CgroupSupport, parseCgroupMounts, parseOwnCgroups, readText, writeText } from './cgroups.js'
import { parseProcessors, withoutReserved } from './processors.js'

/** Keeps pods to a part of the processors. */
export interface KeepApart {
  /** Safe to repeat, and repeated while it holds: processes may have started beside it. */
  set(pod: Cgroup, isApart: boolean): void
  close(): void
}

/** The way this machine has; undefined where there is none, or no processor to spare. */
export function findKeepApart(name: string, { hierarchies }: CgroupSupport): KeepApart | undefined {
  const listing = hierarchies.find(({ version, controllers }) => version === 2 && controllers.includes('cpuset'))
  if (listing) {
    const processors = withoutReserved(parseProcessors(readText(join(listing.base, 'cpuset.cpus.effective'))))
    return processors && new ListedProcessors(processors)
  }
  const mount = parseCgroupMounts(readText('/proc/self/mounts')).find(
    ({ type, options }) => type === 'cgroup' && options.includes('cpuset'),
  )
  if (!mount) return undefined
  const own = join(mount.path, parseOwnCgroups(readText('/proc/self/cgroup')).get('cpuset') ?? '/')
  const processors = withoutReserved(parseProcessors(readText(join(own, 'cpuset.cpus'))))
  return processors && new MovedProcesses(own, name, processors)
}

/** Version 2: the group of a pod has a list of processors, which holds for whatever is in it. */
class ListedProcessors implements KeepApart {
  constructor(private readonly processors: readonly number[]) {}

  set(pod: Cgroup, isApart: boolean): void {
    pod.setProcessors(isApart ? this.processors : undefined)
  }

  close(): void {}
}

/**
 * Version 1: one group for the processes of all pods that are kept apart. A group for each pod would be one more for every
 * process to join, and the kernel works out anew how it balances the processors whenever one goes.
 */
class MovedProcesses implements KeepApart {
  readonly #group: string
  /** What is still to be done, the last word for each pod. */
  readonly #wanted = new Map<Cgroup, boolean>()
  #working: Promise<void> | undefined

  constructor(
    private readonly own: string,
    name: string,
    private readonly processors: readonly number[],
  ) {
    this.#group = join(own, name)
  }

  set(pod: Cgroup, isApart: boolean): void {
    this.#wanted.set(pod, isApart)
    this.#working ??= this.#work()
  }

  close(): void {
    try {
      rmdirSync(this.#group)
    } catch {
      // There was no need for it, or a process is still there: the next start of the platform uses it again.
    }
  }

  async #work(): Promise<void> {
    for (let next = this.#next(); next; next = this.#next()) {
      const [pod, isApart] = next
      if (!isApart) await this.#move(pod, this.own)
      else if (this.#prepare()) await this.#move(pod, this.#group)
    }
    this.#working = undefined
  }

  #next(): [Cgroup, boolean] | undefined {
    const [next] = this.#wanted
    if (next) this.#wanted.delete(next[0])
    return next
  }

  #prepare(): boolean {
    try {
      mkdirSync(this.#group, { recursive: true })
    } catch {
      return false // mounted read-only, or we are not root
    }
    // Without both no process may be in it.
    const memory = writeText(join(this.#group, 'cpuset.mems'), readText(join(this.own, 'cpuset.mems')))
    return memory && writeText(join(this.#group, 'cpuset.cpus'), this.processors.join(','))
  }

  /** What a process starts while this goes on follows it, or is moved at the next call. */
  async #move(pod: Cgroup, group: string): Promise<void> {
    const there = new Set(readText(join(group, 'cgroup.procs')).split('\n').map(Number))
    for (const pid of pod.pids()) {
      // Without waiting for the kernel in this thread. A process that has ended meanwhile needs no place.
      if (!there.has(pid)) await writeFile(join(group, 'cgroup.procs'), String(pid)).catch(() => undefined)
    }
  }
}
