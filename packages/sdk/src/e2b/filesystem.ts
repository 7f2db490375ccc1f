import { posix } from 'node:path'
import type { BytesIn, FileInfo } from '@corral/protocol'
import type { SandboxHandle } from '../sandbox-handle.js'
import { asE2b, InvalidArgumentError, NotFoundError } from './errors.js'

/** A value as well as a type, as in E2B: programs compare with `FileType.DIR`. */
export const FileType = { FILE: 'file', DIR: 'dir' } as const
export type FileType = (typeof FileType)[keyof typeof FileType]

/** All that E2B has; `RENAME` and `CHMOD` never come: a rename is told as `REMOVE` and `CREATE`. */
export const FilesystemEventType = {
  CHMOD: 'chmod',
  CREATE: 'create',
  REMOVE: 'remove',
  RENAME: 'rename',
  WRITE: 'write',
} as const
export type FilesystemEventType = (typeof FilesystemEventType)[keyof typeof FilesystemEventType]

export interface EntryInfo {
  readonly name: string
  readonly path: string
  readonly type: FileType
  readonly size: number
  /** Permission bits. */
  readonly mode: number
  readonly modifiedTime: Date
}

export interface WriteEntry {
  readonly path: string
  readonly data: string | ArrayBuffer | Uint8Array | Blob | ReadableStream<Uint8Array>
}

export interface FilesystemEvent {
  /** The path, relative to the directory that is watched. */
  readonly name: string
  readonly type: FilesystemEventType
}

export interface WatchHandle {
  stop(): Promise<void>
}

const eventTypes = { created: 'create', modified: 'write', deleted: 'remove' } as const

/** `sandbox.files`. Paths that are not absolute, or begin with `~/`, begin at the home directory, as in E2B. */
export class Filesystem {
  readonly #sandbox: SandboxHandle
  #home: Promise<string> | undefined

  constructor(sandbox: SandboxHandle) {
    this.#sandbox = sandbox
  }

  read(path: string, options?: { format?: 'text' }): Promise<string>
  read(path: string, options: { format: 'bytes' }): Promise<Uint8Array>
  read(path: string, options: { format: 'blob' }): Promise<Blob>
  read(path: string, options: { format: 'stream' }): Promise<ReadableStream<Uint8Array>>
  async read(
    path: string,
    options: { format?: 'text' | 'bytes' | 'blob' | 'stream' } = {},
  ): Promise<string | Uint8Array | Blob | ReadableStream<Uint8Array>> {
    const at = await this.#absolute(path)
    return asE2b(async () => {
      const { files } = this.#sandbox
      if (options.format === 'stream') return opened(files.readStream(at))
      const bytes = await files.read(at)
      if (options.format === 'bytes') return bytes
      if (options.format === 'blob') return new Blob([Uint8Array.from(bytes)])
      return new TextDecoder().decode(bytes)
    })
  }

  write(path: string, data: WriteEntry['data']): Promise<EntryInfo>
  write(files: readonly WriteEntry[]): Promise<EntryInfo[]>
  async write(target: string | readonly WriteEntry[], data?: WriteEntry['data']): Promise<EntryInfo | EntryInfo[]> {
    if (typeof target === 'string') {
      if (data === undefined) throw new InvalidArgumentError('Invalid', `there is nothing to write to "${target}"`)
      return this.#writeOne({ path: target, data })
    }
    const written: EntryInfo[] = []
    for (const entry of target) written.push(await this.#writeOne(entry))
    return written
  }

  /** Entries down to `depth` levels, 1 without it. */
  async list(path: string, options: { depth?: number } = {}): Promise<EntryInfo[]> {
    const at = await this.#absolute(path)
    const { depth = 1 } = options
    if (!(depth >= 1))
      throw new InvalidArgumentError('Invalid', `a depth of ${depth} lists nothing: it must be at least 1`)
    const found = await asE2b(() => this.#sandbox.files.list(at, { recursive: depth > 1 }))
    return found
      .filter((entry) => entry.path.split('/').length <= depth)
      .map((entry) => entryInfo(`${at.replace(/\/$/, '')}/${entry.path}`, entry))
  }

  async exists(path: string): Promise<boolean> {
    const at = await this.#absolute(path)
    return asE2b(() => this.#sandbox.files.exists(at))
  }

  async getInfo(path: string): Promise<EntryInfo> {
    const at = await this.#absolute(path)
    const info = await asE2b(() => this.#sandbox.files.stat(at))
    if (!info) throw new NotFoundError('NotFound', `there is no "${at}" in the sandbox`)
    return entryInfo(at, info)
  }

  /** False where it was there already. */
  async makeDir(path: string): Promise<boolean> {
    const at = await this.#absolute(path)
    return asE2b(async () => {
      const found = await this.#sandbox.files.stat(at)
      // Through a link, and refused where a file is in its place.
      if (found?.type !== 'directory') await this.#sandbox.files.mkdir(at)
      return !found
    })
  }

  /** Makes missing parents of `to`, and replaces a file there. */
  async rename(from: string, to: string): Promise<EntryInfo> {
    const [source, target] = [await this.#absolute(from), await this.#absolute(to)]
    await asE2b(async () => {
      await this.#sandbox.files.mkdir(posix.dirname(target))
      await this.#sandbox.files.move(source, target, { overwrite: true })
    })
    return this.getInfo(target)
  }

  /** A file, or a directory with all in it. */
  async remove(path: string): Promise<void> {
    const at = await this.#absolute(path)
    await asE2b(() => this.#sandbox.files.remove(at, { recursive: true }))
  }

  /**
   * Calls back for every change in a directory until `stop`, with `recursive` also for those in directories below it;
   * resolves when the watch stands.
   */
  async watchDir(
    path: string,
    onEvent: (event: FilesystemEvent) => void | Promise<void>,
    options: { recursive?: boolean; onExit?: (error?: Error) => void | Promise<void> } = {},
  ): Promise<WatchHandle> {
    const at = await this.#absolute(path)
    const stop = new AbortController()
    let isStanding: () => void = () => {}
    const standing = new Promise<void>((resolve) => {
      isStanding = resolve
    })
    const follow = async (): Promise<void> => {
      for await (const change of this.#sandbox.files.watch(at, { signal: stop.signal })) {
        if (change.type === 'ready') isStanding()
        const type = eventTypes[change.type as keyof typeof eventTypes]
        const name = change.path ?? ''
        const isWanted = options.recursive === true || !name.includes('/')
        if (type && isWanted) await onEvent({ name, type })
      }
    }
    const ended = follow().then(
      () => undefined,
      (error: unknown) => (stop.signal.aborted ? undefined : (error as Error)),
    )
    const failed = await Promise.race([standing, ended])
    if (failed) await asE2b(() => Promise.reject(failed))
    void ended.then((error) => options.onExit?.(error))
    return {
      stop: async () => {
        stop.abort()
        await ended
      },
    }
  }

  async #writeOne({ path, data }: WriteEntry): Promise<EntryInfo> {
    const at = await this.#absolute(path)
    await asE2b(async () => this.#sandbox.files.write(at, await bytesOf(data)))
    return this.getInfo(at)
  }

  async #absolute(path: string): Promise<string> {
    if (path.startsWith('/')) return posix.normalize(path)
    const home = this.#home ?? this.#findHome()
    this.#home = home
    return posix.normalize(`${await home}/${path.replace(/^~(?=\/|$)/, '.')}`)
  }

  async #findHome(): Promise<string> {
    try {
      return await asE2b(async () => (await this.#sandbox.shell('printf %s "$HOME"').ok()).stdout)
    } catch (error) {
      // The next call asks again: a paused sandbox may have been resumed by then.
      this.#home = undefined
      throw error
    }
  }
}

/** The stream of a file that is there: what is wrong from the start is told by the call, what breaks later by the stream. */
async function opened(chunks: AsyncIterable<Uint8Array>): Promise<ReadableStream<Uint8Array>> {
  const iterator = chunks[Symbol.asyncIterator]()
  let first: IteratorResult<Uint8Array> | undefined = await iterator.next()
  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    const answer = first ?? (await asE2b(() => iterator.next()))
    first = undefined
    return answer
  }
  const end = async (): Promise<IteratorResult<Uint8Array>> => {
    await iterator.return?.()
    return { done: true, value: undefined }
  }
  const rest = { [Symbol.asyncIterator]: () => ({ next, return: end }) }
  return ReadableStream.from(rest) as ReadableStream<Uint8Array>
}

async function bytesOf(data: WriteEntry['data']): Promise<BytesIn> {
  if (typeof data === 'string') return new TextEncoder().encode(data)
  if (data instanceof Blob) return new Uint8Array(await data.arrayBuffer())
  if (data instanceof ArrayBuffer) return new Uint8Array(data)
  return data as unknown as AsyncIterable<Uint8Array> // or bytes, which are taken as they are
}

function entryInfo(path: string, info: FileInfo): EntryInfo {
  const { name, type, size, mode, modified_at } = info
  return {
    name,
    path,
    type: type === 'directory' ? 'dir' : 'file',
    size,
    mode: Number.parseInt(mode, 8),
    modifiedTime: new Date(modified_at),
  }
}
