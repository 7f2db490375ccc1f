import { readIfPresent } from './record-files.js'

/** Counters of the sandbox's own control group: where our node shows them, and where containers of a cluster have them. */
const counterFiles = ['/run/corral/memory.events', '/sys/fs/cgroup/memory.events']

/** How many processes of the sandbox the kernel has ended for want of memory; undefined where that cannot be read. */
export async function countOomKills(files: readonly string[] = counterFiles): Promise<number | undefined> {
  for (const file of files) {
    const count = /^oom_kill (\d+)$/m.exec((await readIfPresent(file)) ?? '')?.[1]
    if (count !== undefined) return Number(count)
  }
  return undefined
}
