import * as z from 'zod'
import { CorralError } from './corral-error.js'
import {
  type DirectoryListing,
  daemonRoutes,
  directoryListingSchema,
  type FileInfo,
  fileHeaders,
  fileInfoSchema,
  type ProcessExitRecord,
  type ProcessRecord,
  processListSchema,
  processRecordSchema,
  type RunnerTask,
  type SandboxWorkspace,
  type SignalName,
  type StartProcessRequest,
  sandboxWorkspaceSchema,
  type TerminalSize,
} from './daemon-api.js'
import {
  type FileChange,
  type FileOperation,
  fileChangeSchema,
  type SandboxBinding,
  type SandboxMetricsRecord,
  sandboxMetricsSchema,
  type TreeEntry,
  treeEntrySchema,
} from './daemon-files-api.js'
import {
  type BytesIn,
  bodyChunks,
  type DaemonCallOptions,
  DaemonRequests,
  defaultTimeoutMs,
  type Fetch,
  parsedLines,
} from './daemon-requests.js'
import { type FrameSource, followOutput, type OutputEvent, type ReadOutputOptions } from './output-reader.js'
import { boundedText, wrapFailure } from './response-failure.js'

export type { BytesIn, DaemonCallOptions, Fetch } from './daemon-requests.js'

export interface WriteFileOptions extends DaemonCallOptions {
  /** Octal permission bits, e.g. `"0755"`. */
  mode?: string | undefined
  /** Create missing parent directories. */
  mkdirs?: boolean | undefined
}

/** Names one life of a daemon: in its answers, and in requests that are meant for that life only. */
export const bootHeader = 'x-corral-boot'

/**
 * Talks to the daemon of one sandbox over any `fetch`. The daemon runs beside code we did not write, so every answer is
 * parsed and bounded; a failure is a `CorralError` with the daemon's code, a lost line `ConnectionLost`.
 */
export class DaemonClient {
  readonly #requests: DaemonRequests

  constructor(options: { fetch: Fetch; baseUrl?: string }) {
    this.#requests = new DaemonRequests(options)
  }

  /** Whether the daemon answers. Never throws but on an aborted `signal`. */
  async health(options: DaemonCallOptions = {}): Promise<boolean> {
    try {
      const response = await this.#requests.open('GET', daemonRoutes.health, { timeoutMs: 5_000, ...options })
      return (await boundedText(response, 100)).trim() === 'ok'
    } catch (error) {
      if (options.signal?.aborted) throw error
      return false
    }
  }

  /** Hands the runner its one task. A second one fails with `TaskAlreadyAccepted`. */
  async sendTask(task: RunnerTask, options: DaemonCallOptions = {}): Promise<void> {
    await this.#requests.json('POST', daemonRoutes.task, z.object({ status: z.literal('accepted') }), options, task)
  }

  /** Starts a process, or joins the one that has this id. Safe to repeat. */
  startProcess(id: string, request: StartProcessRequest, options: DaemonCallOptions = {}): Promise<ProcessRecord> {
    return this.#requests.json('PUT', daemonRoutes.process(id), processRecordSchema, options, request)
  }

  /** The record, or undefined where no process has this id. */
  async findProcess(id: string, options: DaemonCallOptions = {}): Promise<ProcessRecord | undefined> {
    try {
      return await this.getProcess(id, options)
    } catch (error) {
      if (error instanceof CorralError && error.code === 'NotFound') return undefined
      throw error
    }
  }

  /** The record; `NotFound` where no process has this id. */
  getProcess(id: string, options: DaemonCallOptions = {}): Promise<ProcessRecord> {
    return this.#requests.json('GET', daemonRoutes.process(id), processRecordSchema, options)
  }

  async listProcesses(options: DaemonCallOptions = {}): Promise<ProcessRecord[]> {
    return (await this.#requests.json('GET', daemonRoutes.processes, processListSchema, options)).processes
  }

  /**
   * The output from `offset`, in order and without repeats, then one `exit`; a `gap` stands for what is no longer kept of
   * a very long one. Follows until the process ends
   * (`follow: false`: up to what is there now); a lost connection is opened again where it broke, until nothing was
   * heard for `reconnectMs`.
   */
  readOutput(id: string, options: ReadOutputOptions = {}): AsyncIterable<OutputEvent> {
    return followOutput(
      (path, signal) => this.#requests.open('GET', path, { signal, timeoutMs: undefined }),
      id,
      options,
    )
  }

  /**
   * Starts a process, or joins the one that has this id, and answers with its output from the first byte: one request
   * instead of two. `boot` is what `boot()` said: a daemon that has started anew since refuses with `ProcessLost`
   * instead of running the command a second time.
   */
  async openProcess(
    id: string,
    request: StartProcessRequest,
    options: { signal?: AbortSignal | undefined; boot?: string | undefined } = {},
  ): Promise<Response> {
    const headers: Record<string, string> = { 'content-type': 'application/json' }
    if (options.boot) headers[bootHeader] = options.boot
    const path = `${daemonRoutes.process(id)}?attach=true`
    return this.#requests.open('PUT', path, { signal: options.signal }, { body: JSON.stringify(request), headers })
  }

  /** Reads a process that `open` starts or joins; with `open` absent, one that runs. */
  follow(
    id: string,
    open: (signal: AbortSignal) => Promise<Response | FrameSource | undefined>,
    options: ReadOutputOptions = {},
  ): AsyncIterable<OutputEvent> {
    return followOutput(
      async (path, signal) =>
        (await open(signal)) ?? this.#requests.open('GET', path, { signal, timeoutMs: undefined }),
      id,
      options,
    )
  }

  /** Says that output up to `offset` was received, so that the daemon need not hold it. */
  async confirmOutput(id: string, offset: number, options: DaemonCallOptions = {}): Promise<void> {
    await this.#requests.json('POST', `${daemonRoutes.confirm(id)}?offset=${offset}`, z.unknown(), options)
  }

  /** Names this life of the daemon; undefined where something else, or nothing, answers. */
  async boot(options: DaemonCallOptions = {}): Promise<string | undefined> {
    const response = await this.#requests.open('GET', daemonRoutes.health, { timeoutMs: 10_000, ...options })
    const text = await boundedText(response, 4096)
    return text.trim() === 'ok' ? (response.headers.get(bootHeader) ?? '') : undefined
  }

  /** Where to work; undefined where the daemon is of an earlier release, or there is no place that can be written to. */
  async workspace(options: DaemonCallOptions = {}): Promise<SandboxWorkspace | undefined> {
    try {
      return await this.#requests.json('GET', daemonRoutes.workspace, sandboxWorkspaceSchema, {
        timeoutMs: 10_000,
        ...options,
      })
    } catch (error) {
      if (error instanceof CorralError && error.code === 'NotFound') return undefined
      throw error
    }
  }

  /** How the process ended, as soon as it has. Reads no output. */
  async waitForExit(
    id: string,
    options: Omit<ReadOutputOptions, 'offset' | 'follow'> = {},
  ): Promise<ProcessExitRecord> {
    const record = await this.getProcess(id, { signal: options.signal })
    if (record.exit) return record.exit
    for await (const event of this.readOutput(id, { ...options, offset: record.output_bytes })) {
      if (event.type === 'exit') return event.exit
    }
    throw new CorralError('ConnectionLost', `the output of process "${id}" ended without an exit record`)
  }

  /** Writes to standard input; `eof` closes it afterwards. Resolves when the process's pipe has taken everything. */
  async writeStdin(id: string, data: BytesIn, options: DaemonCallOptions & { eof?: boolean } = {}): Promise<void> {
    const path = `${daemonRoutes.stdin(id)}${options.eof ? '?eof=true' : ''}`
    await this.#requests.send('POST', path, data, options)
  }

  /** To the process group, or with `group: false` to the process alone. `ProcessExited` when it has ended. */
  async signal(id: string, signal: SignalName, options: DaemonCallOptions & { group?: boolean } = {}): Promise<void> {
    const body = options.group === undefined ? { signal } : { signal, group: options.group }
    await this.#requests.json('POST', daemonRoutes.signal(id), z.unknown(), options, body)
  }

  async resize(id: string, size: TerminalSize, options: DaemonCallOptions = {}): Promise<void> {
    await this.#requests.json('POST', daemonRoutes.resize(id), z.unknown(), options, size)
  }

  /** The file's bytes as they arrive; breaking off closes the connection. */
  async *readFileStream(path: string, options: DaemonCallOptions = {}): AsyncIterable<Uint8Array> {
    const response = await this.#requests.open('GET', daemonRoutes.file(absolute(path)), {
      ...options,
      timeoutMs: undefined,
    })
    if (response.headers.get(fileHeaders.type) === 'directory') {
      await response.body?.cancel()
      throw new CorralError('IsADirectory', `"${path}" is a directory`)
    }
    yield* bodyChunks(response)
  }

  /** The whole file, at most `maxBytes` (16 MiB) of it: longer ones fail with `RequestEntityTooLarge`. */
  async readFile(path: string, options: DaemonCallOptions & { maxBytes?: number } = {}): Promise<Uint8Array> {
    const maxBytes = options.maxBytes ?? 16 * 1024 * 1024
    const chunks: Uint8Array[] = []
    let length = 0
    for await (const chunk of this.readFileStream(path, options)) {
      length += chunk.length
      if (length > maxBytes) throw new CorralError('RequestEntityTooLarge', `"${path}" has more than ${maxBytes} bytes`)
      chunks.push(chunk)
    }
    const bytes = new Uint8Array(length)
    let position = 0
    for (const chunk of chunks) {
      bytes.set(chunk, position)
      position += chunk.length
    }
    return bytes
  }

  /** Writes the file as a whole: readers see the old or the new content, never a part. */
  async writeFile(path: string, data: BytesIn, options: WriteFileOptions = {}): Promise<void> {
    const query = new URLSearchParams()
    if (options.mode) query.set('mode', options.mode)
    if (options.mkdirs) query.set('mkdirs', 'true')
    const suffix = query.size > 0 ? `?${query}` : ''
    await this.#requests.send('PUT', `${daemonRoutes.file(absolute(path))}${suffix}`, data, options)
  }

  /** Type, size and mode of a path, or undefined where there is nothing. Links are not followed. */
  async statFile(path: string, options: DaemonCallOptions = {}): Promise<FileInfo | undefined> {
    try {
      const response = await this.#requests.open('HEAD', daemonRoutes.file(absolute(path)), {
        timeoutMs: defaultTimeoutMs,
        ...options,
      })
      return fileInfoSchema.parse({
        name: path.slice(path.lastIndexOf('/') + 1),
        type: response.headers.get(fileHeaders.type),
        size: Number(response.headers.get(fileHeaders.size)),
        mode: response.headers.get(fileHeaders.mode),
        modified_at: response.headers.get(fileHeaders.modifiedAt),
      })
    } catch (error) {
      if (error instanceof CorralError && error.code === 'NotFound') return undefined
      throw wrapFailure(error, options.signal)
    }
  }

  /** Makes directories, moves, copies. */
  async fileOperation(operation: FileOperation, options: DaemonCallOptions = {}): Promise<void> {
    const path = daemonRoutes.fileOperation
    await this.#requests.json('POST', path, z.unknown(), { timeoutMs: 600_000, ...options }, operation)
  }

  /** Everything below a directory, in no particular order; `glob` picks by relative path. */
  async *walk(directory: string, options: DaemonCallOptions & { glob?: string } = {}): AsyncIterable<TreeEntry> {
    const query = options.glob === undefined ? '' : `?${new URLSearchParams({ glob: options.glob })}`
    const path = `${daemonRoutes.tree(absolute(directory))}${query}`
    const response = await this.#requests.open('GET', path, { signal: options.signal })
    yield* parsedLines(response, treeEntrySchema)
  }

  /** Changes below a path, after one `ready`; ends through `signal` or `break`. */
  async *watchFiles(path: string, options: { signal?: AbortSignal | undefined } = {}): AsyncIterable<FileChange> {
    const response = await this.#requests.open('GET', daemonRoutes.watch(absolute(path)), options)
    yield* parsedLines(response, fileChangeSchema)
  }

  /** Gives the sandbox what it did not have when it started. */
  async bind(binding: SandboxBinding, options: DaemonCallOptions = {}): Promise<void> {
    await this.#requests.json('PUT', daemonRoutes.binding, z.unknown(), options, binding)
  }

  /** Resolves when connections to this reverse port get through to their target; `BrokerUnreachable` where they do not. */
  async checkReversePort(port: number, options: DaemonCallOptions = {}): Promise<void> {
    await this.#requests.json('GET', daemonRoutes.reversePort(port), z.object({ reachable: z.literal(true) }), options)
  }

  metrics(options: DaemonCallOptions = {}): Promise<SandboxMetricsRecord> {
    return this.#requests.json('GET', daemonRoutes.metrics, sandboxMetricsSchema, options)
  }

  listDirectory(path: string, options: DaemonCallOptions = {}): Promise<DirectoryListing> {
    const isDirectory = (response: Response): void => {
      if (response.headers.get(fileHeaders.type) !== 'directory')
        throw new CorralError('NotADirectory', `"${path}" is not a directory`)
    }
    return this.#requests.json(
      'GET',
      daemonRoutes.file(absolute(path)),
      directoryListingSchema,
      options,
      undefined,
      isDirectory,
    )
  }

  /** Deletes a file or, with `recursive`, a directory with all in it. Absent is done. */
  async deleteFile(path: string, options: DaemonCallOptions & { recursive?: boolean } = {}): Promise<void> {
    const suffix = options.recursive ? '?recursive=true' : ''
    try {
      await this.#requests.json('DELETE', `${daemonRoutes.file(absolute(path))}${suffix}`, z.unknown(), options)
    } catch (error) {
      if (!(error instanceof CorralError && error.code === 'NotFound')) throw error
    }
  }

  /** Unpacks a tar stream into a directory, which is created if missing. */
  async putTar(directory: string, data: BytesIn, options: DaemonCallOptions = {}): Promise<void> {
    await this.#requests.send('PUT', daemonRoutes.tar(absolute(directory)), data, options)
  }

  /** A directory as a tar stream. */
  async *getTar(directory: string, options: DaemonCallOptions = {}): AsyncIterable<Uint8Array> {
    const path = daemonRoutes.tar(absolute(directory))
    yield* bodyChunks(await this.#requests.open('GET', path, { ...options, timeoutMs: undefined }))
  }
}

/** Callers in JavaScript hand in anything; half of a surrogate pair has no bytes that a file name could have. */
function absolute(path: string): string {
  if (typeof path !== 'string' || !path.startsWith('/') || path.includes('\0') || /\p{Surrogate}/u.test(path))
    throw new CorralError('Invalid', `"${path}" is not an absolute path`)
  return path
}
