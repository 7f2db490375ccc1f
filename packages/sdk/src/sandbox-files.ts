import { spawn } from 'node:child_process'
import { stat } from 'node:fs/promises'
import type { BytesIn, FileChange, FileInfo } from '@corral/protocol'
import { byteLimit } from './byte-limit.js'
import type { FileCall, FileEntry, RuntimeFiles } from './runtime/sandbox-runtime.js'
import { SandboxError, toSandboxError, translated } from './sandbox-error.js'
import type { OpenLink, SandboxLink } from './sandbox-link.js'
import { tarEnd } from './tar-end.js'
import { unpackDirectory } from './unpack-directory.js'

export interface ReadOptions extends FileCall {
  /** More is refused with `RequestEntityTooLarge`. 16 MiB without it. */
  readonly maxBytes?: number | undefined
}

/** Files of a sandbox by absolute path, over the line its handle keeps. */
export class SandboxFiles {
  readonly #link: SandboxLink

  constructor(link: SandboxLink) {
    this.#link = link
  }

  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    const { maxBytes = 16 * 1024 * 1024 } = options
    byteLimit(maxBytes)
    const chunks: Uint8Array[] = []
    let bytes = 0
    for await (const chunk of this.readStream(path, options)) {
      bytes += chunk.length
      if (bytes > maxBytes) throw new SandboxError('RequestEntityTooLarge', `"${path}" has more than ${maxBytes} bytes`)
      chunks.push(chunk)
    }
    return new Uint8Array(Buffer.concat(chunks))
  }

  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options))
  }

  /** The bytes as they arrive; breaking off stops the transfer. */
  readStream(path: string, options: FileCall = {}): AsyncIterable<Uint8Array> {
    return this.#stream(options, (files) => files.read(path, options))
  }

  /** Replaces the file as a whole, parents made where missing: readers see the old or the new content. */
  write(path: string, data: BytesIn, options: FileCall & { mode?: string } = {}): Promise<void> {
    return this.#call(options, (files) => {
      const isData = typeof data === 'string' || data instanceof Uint8Array || Symbol.asyncIterator in Object(data)
      if (!isData) throw new SandboxError('Invalid', 'data is a string, bytes or an async iterable of bytes')
      return files.write(path, data, options)
    })
  }

  /** Type, size, mode, time; undefined where there is nothing. Links are not followed. */
  stat(path: string, options: FileCall = {}): Promise<FileInfo | undefined> {
    return this.#call(options, (files) => files.stat(path, options))
  }

  async exists(path: string, options: FileCall = {}): Promise<boolean> {
    return (await this.stat(path, options)) !== undefined
  }

  /** Entries of a directory; with `recursive` all below it, with `glob` those whose path relative to it fits. */
  list(path: string, options: FileCall & { recursive?: boolean; glob?: string } = {}): FileListing {
    return new FileListing(() => this.#stream(options, (files) => files.list(path, options)))
  }

  /** With missing parents; a directory that is there is fine. */
  mkdir(path: string, options: FileCall = {}): Promise<void> {
    return this.#call(options, (files) => files.mkdir(path, options))
  }

  /** `AlreadyExists` where `to` is taken, unless `overwrite`. */
  move(from: string, to: string, options: FileCall & { overwrite?: boolean } = {}): Promise<void> {
    return this.#call(options, (files) => files.move(from, to, options))
  }

  copy(from: string, to: string, options: FileCall & { overwrite?: boolean } = {}): Promise<void> {
    return this.#call(options, (files) => files.copy(from, to, options))
  }

  /** Absent is done. A directory with something in it needs `recursive`. */
  remove(path: string, options: FileCall & { recursive?: boolean } = {}): Promise<void> {
    return this.#call(options, (files) => files.remove(path, options))
  }

  /** Changes below a path, the first one after the watch stands. Ends through `signal` or `break`, and after a watched directory itself was deleted. */
  async *watch(path: string, options: FileCall = {}): AsyncIterable<FileChange> {
    for await (const change of this.#stream(options, (files) => files.watch(path, options))) {
      if (change.type !== 'heartbeat') yield change
    }
  }

  /** A local directory with all in it, into a directory of the sandbox, which is made where missing. */
  uploadDirectory(local: string, remote: string, options: FileCall = {}): Promise<void> {
    return this.#call(options, async (files) => {
      if (!(await stat(local)).isDirectory()) throw new SandboxError('NotADirectory', `"${local}" is not a directory`)
      const tar = spawn('tar', ['-C', local, '-cf', '-', '.'], { stdio: ['ignore', 'pipe', 'pipe'] })
      const ended = tarEnd(tar)
      ended.catch(() => {})
      try {
        await files.unpack(remote, tar.stdout as AsyncIterable<Uint8Array>, options)
      } catch (error) {
        // Nobody reads it any more: it would wait for ever, and this program for it.
        tar.kill('SIGKILL')
        throw error
      }
      await ended
    })
  }

  /**
   * A directory of the sandbox with all in it, into a local one, which is made where missing: files of the same name are
   * replaced, others stay. Nothing lands outside of it.
   */
  downloadDirectory(remote: string, local: string, options: FileCall = {}): Promise<void> {
    return this.#call(options, async (files) => {
      await unpackDirectory(local, files.pack(remote, options))
    })
  }

  #call<T>(options: FileCall, call: (files: RuntimeFiles) => Promise<T>): Promise<T> {
    return translated(async () => {
      const link = await this.#link.open(options.signal)
      try {
        return await call((await this.#link.runtime(options.signal)).files)
      } catch (error) {
        throw await this.#explained(error, link, options.signal)
      }
    }, options.signal)
  }

  async *#stream<T>(options: FileCall, open: (files: RuntimeFiles) => AsyncIterable<T>): AsyncGenerator<T> {
    const link = await this.#link.open(options.signal)
    try {
      yield* open((await this.#link.runtime(options.signal)).files)
    } catch (error) {
      throw await this.#explained(error, link, options.signal)
    }
  }

  /** A broken line may mean that the sandbox is gone: then that is the error. */
  async #explained(error: unknown, link: OpenLink, signal: AbortSignal | undefined): Promise<SandboxError> {
    const failure = toSandboxError(error, signal)
    if (failure.code !== 'ConnectionLost') return failure
    try {
      await this.#link.diagnose(failure, link)
      return failure
    } catch (reason) {
      return toSandboxError(reason)
    }
  }
}

/** Entries as they come, or with `await` all of them. Each time it is read the directory is asked. */
export class FileListing implements AsyncIterable<FileEntry>, PromiseLike<FileEntry[]> {
  readonly #open: () => AsyncIterable<FileEntry>

  constructor(open: () => AsyncIterable<FileEntry>) {
    this.#open = open
  }

  [Symbol.asyncIterator](): AsyncIterator<FileEntry> {
    return this.#open()[Symbol.asyncIterator]()
  }

  // biome-ignore lint/suspicious/noThenProperty: awaiting the listing gives the whole of it.
  then<A = FileEntry[], B = never>(
    onFulfilled?: ((entries: FileEntry[]) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const all = (async () => {
      const entries: FileEntry[] = []
      for await (const entry of this.#open()) entries.push(entry)
      return entries.sort((a, b) => (a.path < b.path ? -1 : 1))
    })()
    return all.then(onFulfilled, onRejected)
  }
}
