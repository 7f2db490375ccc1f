import { createHash, randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Clock, systemClock } from '@corral/ports'

/** What is known of a stored body. */
export interface Stored {
  readonly contentType: string
  readonly size: number
  /** The address that answered. */
  readonly from: string
  readonly etag?: string
  readonly lastModified?: string
}

export interface Entry extends Stored {
  readonly path: string
  /** When it was fetched or found unchanged. */
  readonly checkedAtMs: number
}

/**
 * Bodies by key in a directory, least recently used first out when they are more than `budgetBytes`. An entry is a pair
 * of files that appear by rename, the description last: a kill in between leaves a body without description, which the
 * next start removes. One process owns the directory.
 */
export class DiskCache {
  readonly #directory: string
  readonly #budgetBytes: number
  readonly #clock: Clock
  /** In the order of use, the oldest first. */
  readonly #entries = new Map<string, Entry>()
  #usedBytes = 0
  /** Of bodies that are being written. */
  #draftBytes = 0

  private constructor(options: { directory: string; budgetBytes: number; clock?: Clock }) {
    this.#directory = options.directory
    this.#budgetBytes = options.budgetBytes
    this.#clock = options.clock ?? systemClock
  }

  static async open(options: { directory: string; budgetBytes: number; clock?: Clock }): Promise<DiskCache> {
    await mkdir(options.directory, { recursive: true, mode: 0o700 })
    const cache = new DiskCache(options)
    await cache.#load()
    await cache.#shrink()
    return cache
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  find(key: string): Entry | undefined {
    const hash = hashOf(key)
    const entry = this.#entries.get(hash)
    if (!entry) return undefined
    this.#entries.delete(hash)
    this.#entries.set(hash, entry)
    return entry
  }

  /** Stores a body under a key in place of what was there. A body that ends early is an error and is not stored. */
  async put(
    key: string,
    description: Omit<Stored, 'size'> & { size?: number | undefined },
    body: Readable | Buffer,
    signal?: AbortSignal,
  ): Promise<Entry> {
    const hash = hashOf(key)
    const draft = join(this.#directory, `${hash}.${randomUUID()}.draft`)
    const written = { bytes: 0 }
    const counted = this.#counted(Buffer.isBuffer(body) ? Readable.from([body]) : body, description.from, written)
    try {
      await pipeline(counted, createWriteStream(draft, { mode: 0o600 }), { ...(signal && { signal }) })
      const { size } = await stat(draft)
      if (description.size !== undefined && description.size !== size)
        throw new Error(`${description.from} sent ${size} of ${description.size} bytes`)
      // Each version has its own file name, so that a client that is still reading the former version keeps its file.
      const path = join(this.#directory, `${hash}.${randomUUID()}.body`)
      await rename(draft, path)
      return await this.#enter(hash, { ...description, size, path, checkedAtMs: this.#clock.now().getTime() })
    } finally {
      await rm(draft, { force: true })
      this.#draftBytes -= written.bytes
    }
  }

  /**
   * What is being written may take as much as what is kept, all of it together: a body that does not end, or many large ones
   * at once, would otherwise fill the disk before anything is removed.
   */
  async *#counted(body: Readable, from: string, written: { bytes: number }): AsyncGenerator<Buffer> {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      written.bytes += chunk.length
      this.#draftBytes += chunk.length
      if (this.#draftBytes > this.#budgetBytes)
        throw new Error(`${from} does not fit: downloads under way take more than ${this.#budgetBytes} bytes`)
      yield chunk
    }
  }

  /** The registry answered that the entry has not changed: its age counts from now. */
  async renew(key: string): Promise<void> {
    const hash = hashOf(key)
    const entry = this.#entries.get(hash)
    if (entry) await this.#enter(hash, { ...entry, checkedAtMs: this.#clock.now().getTime() })
  }

  async #enter(hash: string, entry: Entry): Promise<Entry> {
    const draft = join(this.#directory, `${hash}.${randomUUID()}.draft`)
    await writeFile(draft, JSON.stringify(entry), { mode: 0o600 })
    await rename(draft, join(this.#directory, `${hash}.json`))
    const former = this.#entries.get(hash)
    this.#entries.delete(hash)
    this.#entries.set(hash, entry)
    this.#usedBytes += entry.size - (former?.size ?? 0)
    if (former && former.path !== entry.path) await rm(former.path, { force: true })
    await this.#shrink(hash)
    return entry
  }

  /** Removes the least recently used until the rest fits; what was stored just now stays even where it alone is too much. */
  async #shrink(keep?: string): Promise<void> {
    for (const [hash, entry] of this.#entries) {
      if (this.#usedBytes <= this.#budgetBytes) return
      if (hash === keep) continue
      this.#entries.delete(hash)
      this.#usedBytes -= entry.size
      await rm(join(this.#directory, `${hash}.json`), { force: true })
      await rm(entry.path, { force: true })
    }
  }

  async #load(): Promise<void> {
    const names = await readdir(this.#directory)
    const bodies = new Set(names.filter((name) => !name.endsWith('.json')))
    const found: [string, Entry, number][] = []
    for (const name of names.filter((name) => name.endsWith('.json'))) {
      const described = join(this.#directory, name)
      const entry = await readEntry(described)
      const size = entry && (await stat(entry.path).catch(() => undefined))?.size
      if (entry && size === entry.size) {
        bodies.delete(entry.path.split('/').at(-1) ?? '')
        found.push([name.slice(0, -'.json'.length), entry, (await stat(described)).mtimeMs])
      } else await rm(described, { force: true })
    }
    for (const name of bodies) await rm(join(this.#directory, name), { force: true })
    for (const [hash, entry] of found.sort((one, other) => one[2] - other[2])) {
      this.#entries.set(hash, entry)
      this.#usedBytes += entry.size
    }
  }

  /** Writes the order of use down, for the next start. */
  async close(): Promise<void> {
    const now = this.#clock.now().getTime() / 1000
    let place = this.#entries.size
    for (const hash of this.#entries.keys())
      await utimes(join(this.#directory, `${hash}.json`), now, now - place--).catch(() => undefined)
  }
}

const hashOf = (key: string): string => createHash('sha256').update(key).digest('hex')

/** An entry whose description cannot be parsed is treated as missing and fetched again. */
async function readEntry(path: string): Promise<Entry | undefined> {
  try {
    const value = JSON.parse(await readFile(path, 'utf8')) as Entry
    return typeof value.path === 'string' && typeof value.size === 'number' ? value : undefined
  } catch {
    return undefined
  }
}
