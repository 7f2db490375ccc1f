import { type FSWatcher, type WatchEventType, watch } from 'node:fs'
import { lstat, opendir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { CorralError, daemonLimits } from '@corral/protocol'
import { isTemporaryName } from './temporary-name.js'

export interface TreeWatchOptions {
  readonly onChange: (type: 'created' | 'modified' | 'deleted', path: string) => void
  readonly onError: (error: unknown) => void
  readonly signal: AbortSignal
  readonly maxDirectories?: number
}

export interface TreeWatch {
  close(): void
}

/**
 * Watches a directory and those below it, links not followed. Resolves when all are watched. One watch for each directory:
 * Node's own recursive watch takes one for each file and reads the whole tree before it returns, which for `/usr` is 14
 * seconds in which the daemon answers no request, and more memory than a sandbox may have.
 */
export async function watchTree(root: string, options: TreeWatchOptions): Promise<TreeWatch> {
  const tree = new WatchedTree(root, options)
  try {
    await tree.add('', false)
    return tree
  } catch (error) {
    tree.close()
    throw error
  }
}

class WatchedTree implements TreeWatch {
  readonly #root: string
  readonly #options: TreeWatchOptions
  /** By path relative to the root, which is the empty one. */
  readonly #watchers = new Map<string, FSWatcher>()
  #isClosed = false

  constructor(root: string, options: TreeWatchOptions) {
    this.#root = root
    this.#options = options
  }

  close(): void {
    this.#isClosed = true
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }

  /**
   * Watches a directory and what is below it. The entries of a new directory are reported as created: they may have been made
   * before the watch on it began, and then no event comes for them.
   */
  async add(inside: string, isNew: boolean): Promise<void> {
    const pending = [inside]
    for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
      if (this.#isClosed || this.#options.signal.aborted) return
      if (this.#watchers.has(directory) || !this.#watch(directory)) continue
      // One that went away or is not ours to read has no entries.
      const opened = await opendir(join(this.#root, directory)).catch(() => undefined)
      if (!opened) continue
      for await (const entry of opened) {
        const path = join(directory, entry.name)
        if (isTemporaryName(entry.name)) continue
        if (isNew) this.#options.onChange('created', path)
        if (entry.isDirectory()) pending.push(path)
      }
    }
  }

  #watch(directory: string): boolean {
    const { maxDirectories = daemonLimits.watchedDirectories } = this.#options
    if (this.#watchers.size >= maxDirectories)
      throw new CorralError(
        'Invalid',
        `"${this.#root}" has more than ${maxDirectories} directories: watch one below it`,
      )
    try {
      const options = { persistent: false } as const
      const watcher = watch(join(this.#root, directory), options, (event, name) => {
        this.#told(directory, event, name ?? '').catch((error: unknown) => this.#options.onError(error))
      })
      watcher.on('error', () => this.#drop(directory))
      this.#watchers.set(directory, watcher)
      return true
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOSPC' || code === 'EMFILE')
        throw new CorralError('ServiceUnavailable', 'the machine has no file watches left', { cause: error })
      if (directory === '') throw error
      return false
    }
  }

  async #told(directory: string, event: WatchEventType, name: string): Promise<void> {
    if (isTemporaryName(name)) return
    const path = join(directory, name)
    const info = await lstat(join(this.#root, path)).catch(() => undefined)
    if (this.#isClosed) return
    if (event === 'change') {
      // A watched directory tells of itself under its own name; its parent tells it too.
      if (info || name !== basename(join(this.#root, directory))) this.#options.onChange('modified', path)
      return
    }
    if (info) {
      this.#options.onChange('created', path)
      if (info.isDirectory()) await this.add(path, true)
      return
    }
    const isItself = name === basename(join(this.#root, directory)) && !(await this.#exists(directory))
    this.#drop(isItself ? directory : path)
    if (!isItself || directory === '') this.#options.onChange('deleted', isItself ? '' : path)
  }

  async #exists(directory: string): Promise<boolean> {
    return (await lstat(join(this.#root, directory)).catch(() => undefined)) !== undefined
  }

  #drop(directory: string): void {
    for (const [path, watcher] of this.#watchers) {
      if (path !== directory && !path.startsWith(`${directory}/`)) continue
      watcher.close()
      this.#watchers.delete(path)
    }
  }
}
