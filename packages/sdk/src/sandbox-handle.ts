import type { BytesIn, DaemonCallOptions, DirectoryListing, WriteFileOptions } from '@corral/protocol'
import type { Sandbox, Stored } from '@corral/resources'
import type { SandboxCollection } from './sandbox-collection.js'
import type { SandboxConnection } from './sandbox-connection.js'
import { translated, translatedStream } from './sandbox-error.js'
import type { ExecBufferedOptions, ExecProcess, ExecResult, ExecStreamOptions } from './sandbox-exec.js'
import type { WaitOptions } from './wait-for.js'

/** A sandbox somebody else owns: names and a way to it. Letting go of it ends nothing. */
export class SandboxHandle {
  readonly name: string
  readonly namespace: string
  /** Files, through the daemon inside. */
  readonly files: SandboxFiles
  readonly #sandboxes: SandboxCollection

  constructor(sandboxes: SandboxCollection, ref: { name: string; namespace: string }) {
    this.name = ref.name
    this.namespace = ref.namespace
    this.#sandboxes = sandboxes
    this.files = new SandboxFiles(() => sandboxes.connect(this))
  }

  /** The object as the server has it now. */
  object(options: { signal?: AbortSignal } = {}): Promise<Stored<Sandbox>> {
    return this.#sandboxes.objects.get(this.name, { ...options, namespace: this.namespace })
  }

  exec(command: readonly string[], options: ExecBufferedOptions = {}): Promise<ExecResult> {
    return this.#sandboxes.exec(this, command, options)
  }

  execStream(command: readonly string[], options: ExecStreamOptions = {}): Promise<ExecProcess> {
    return this.#sandboxes.execStream(this, command, options)
  }

  /** A line to the daemon inside, which the caller closes. */
  connect(options: { signal?: AbortSignal } = {}): Promise<SandboxConnection> {
    return this.#sandboxes.connect(this, options)
  }

  waitForReady(options: WaitOptions = {}): Promise<Stored<Sandbox>> {
    return this.#sandboxes.waitForReady(this.name, { ...options, namespace: this.namespace })
  }

  pause(options: WaitOptions = {}): Promise<void> {
    return this.#sandboxes.pause(this.name, { ...options, namespace: this.namespace })
  }

  resume(options: WaitOptions = {}): Promise<void> {
    return this.#sandboxes.resume(this.name, { ...options, namespace: this.namespace })
  }
}

/** A sandbox we made: the end of its scope deletes it. */
export class OwnedSandbox extends SandboxHandle implements AsyncDisposable {
  /** The claim it came from, where it came from one. */
  readonly claimName: string | undefined
  readonly #remove: (signal?: AbortSignal) => Promise<void>

  constructor(
    sandboxes: SandboxCollection,
    ref: { name: string; namespace: string; claimName?: string | undefined },
    remove: (signal?: AbortSignal) => Promise<void>,
  ) {
    super(sandboxes, ref)
    this.claimName = ref.claimName
    this.#remove = remove
  }

  /** Deletes it, with the claim it came from. Absent is done. */
  delete(options: { signal?: AbortSignal } = {}): Promise<void> {
    return this.#remove(options.signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.delete({ signal: AbortSignal.timeout(30_000) })
  }
}

/** Files of a sandbox by absolute path. Every call opens a line and closes it. */
export class SandboxFiles {
  readonly #connect: () => Promise<SandboxConnection>

  constructor(connect: () => Promise<SandboxConnection>) {
    this.#connect = connect
  }

  read(path: string, options: DaemonCallOptions & { maxBytes?: number } = {}): Promise<Uint8Array> {
    return this.#with((connection) => connection.daemon.readFile(path, options), options.signal)
  }

  async readText(path: string, options: DaemonCallOptions & { maxBytes?: number } = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options))
  }

  readStream(path: string, options: DaemonCallOptions = {}): AsyncIterable<Uint8Array> {
    const connect = this.#connect
    return translatedStream(async function* () {
      const connection = await connect()
      try {
        yield* connection.daemon.readFileStream(path, options)
      } finally {
        await connection.close()
      }
    }, options.signal)
  }

  write(path: string, data: BytesIn, options: WriteFileOptions = {}): Promise<void> {
    return this.#with((connection) => connection.daemon.writeFile(path, data, options), options.signal)
  }

  list(path: string, options: DaemonCallOptions = {}): Promise<DirectoryListing> {
    return this.#with((connection) => connection.daemon.listDirectory(path, options), options.signal)
  }

  delete(path: string, options: DaemonCallOptions & { recursive?: boolean } = {}): Promise<void> {
    return this.#with((connection) => connection.daemon.deleteFile(path, options), options.signal)
  }

  #with<T>(call: (connection: SandboxConnection) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return translated(async () => {
      const connection = await this.#connect()
      try {
        return await call(connection)
      } finally {
        await connection.close()
      }
    }, signal)
  }
}
