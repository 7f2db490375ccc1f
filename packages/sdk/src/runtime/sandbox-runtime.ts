import type { BytesIn, FileChange, FileInfo, SandboxMetricsRecord, SignalName, TerminalSize } from '@corral/protocol'

/** What answers inside a sandbox: our daemon, upstream's two runtimes, or nothing but the kubelet's exec. */
export type RuntimeKind = 'corral' | 'sandboxd' | 'legacy' | 'pod-exec'

export interface ProcessSpec {
  readonly argv: readonly string[]
  readonly cwd?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  /** `open`: written to later. Bytes: all there is. Absent: end of file at once. */
  readonly stdin?: 'open' | Uint8Array | undefined
  readonly pty?: TerminalSize | undefined
  readonly user?: string | undefined
}

export type ProcessEvent =
  | { readonly type: 'data'; readonly stream: 'stdout' | 'stderr'; readonly data: Uint8Array; readonly offset: number }
  | { readonly type: 'gap'; readonly offset: number; readonly bytes: number }
  | { readonly type: 'exit'; readonly exitCode: number; readonly signal?: number | undefined }

/** A command as a runtime runs it: started once, however often the connection under it is cut. */
export interface RuntimeProcess {
  /** Known to `processes.attach`, where the runtime has names for processes. */
  readonly id: string | undefined
  /** Read once. Ends with one `exit`; throws when the end cannot be learned. */
  readonly events: AsyncIterable<ProcessEvent>
  write(data: Uint8Array): Promise<void>
  end(): Promise<void>
  kill(signal: SignalName): Promise<void>
  resize(size: TerminalSize): Promise<void>
}

export interface FileCall {
  readonly signal?: AbortSignal | undefined
}

/** An entry below a listed directory; `path` is relative to it. */
export interface FileEntry extends FileInfo {
  readonly path: string
}

export interface RuntimeFiles {
  read(path: string, call: FileCall): AsyncIterable<Uint8Array>
  write(path: string, data: BytesIn, call: FileCall & { mode?: string | undefined }): Promise<void>
  stat(path: string, call: FileCall): Promise<FileInfo | undefined>
  list(path: string, call: FileCall & { recursive?: boolean; glob?: string | undefined }): AsyncIterable<FileEntry>
  mkdir(path: string, call: FileCall): Promise<void>
  move(from: string, to: string, call: FileCall & { overwrite?: boolean | undefined }): Promise<void>
  copy(from: string, to: string, call: FileCall & { overwrite?: boolean | undefined }): Promise<void>
  remove(path: string, call: FileCall & { recursive?: boolean | undefined }): Promise<void>
  watch(path: string, call: FileCall): AsyncIterable<FileChange>
  /** A directory as a tar stream, and back. */
  pack(directory: string, call: FileCall): AsyncIterable<Uint8Array>
  unpack(directory: string, tar: AsyncIterable<Uint8Array>, call: FileCall): Promise<void>
}

/** What a runtime inside a sandbox can do, whatever its protocol. What it cannot is `Unsupported`. */
export interface SandboxRuntime {
  readonly kind: RuntimeKind
  start(spec: ProcessSpec): RuntimeProcess
  readonly files: RuntimeFiles
  metrics(call: FileCall): Promise<SandboxMetricsRecord>
  /** Variables for everything that is started from now on. */
  bindEnv(env: Readonly<Record<string, string>>, call: FileCall): Promise<void>
}
