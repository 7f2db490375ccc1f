import type { Readable } from 'node:stream'

/** What a sandbox of a provider is doing. */
export type InstanceStatus = 'stopped' | 'creating' | 'running' | 'idle' | 'stopping' | 'error'

export interface InstanceConfig {
  readonly id?: string
  /** One sandbox per project. */
  readonly projectId: string
  /** A directory of this machine, copied to `/workspace` before `create` resolves. What changes inside stays inside. */
  readonly projectPath?: string
  readonly image?: string
  readonly memoryMb?: number
  readonly cpuCores?: number
  /** Ends the sandbox when it was not touched for so long. */
  readonly idleTimeoutMinutes?: number
  /**
   * Files and directories of this machine that the sandbox is given, each as a copy made before `create` resolves.
   * `Unsupported` without `readonly: true`: nothing inside a sandbox can write to this machine.
   */
  readonly volumeMounts?: readonly InstanceVolumeMount[]
  readonly env?: Readonly<Record<string, string>>
  /** `none`: nothing but the daemon's own port gets in, and nothing out. */
  readonly networkMode?: 'bridge' | 'none'
}

export interface InstanceVolumeMount {
  readonly hostPath: string
  readonly containerPath: string
  readonly readonly?: boolean
}

export interface InstanceExecResult {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

export interface InstanceStreamOptions {
  readonly cmd: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly asRoot?: boolean
}

export interface InstanceStream {
  readonly stdout: Readable
  readonly stderr: Readable
  /** Settles with the end, also after `kill`. */
  wait(): Promise<{ exitCode: number }>
  kill(): Promise<void>
}

export interface InstanceMetrics {
  readonly cpuUsagePercent: number
  readonly memoryUsageMb: number
  readonly memoryLimitMb: number
  readonly diskUsageMb: number
  readonly networkRxBytes: number
  readonly networkTxBytes: number
  /** Seconds. */
  readonly uptime: number
}

/** One sandbox of a provider. Sessions stay when clients go: they are terminals of the daemon inside. */
export interface SandboxInstance {
  readonly id: string
  readonly projectId: string
  readonly containerId: string
  readonly status: InstanceStatus
  exec(cmd: string, args?: readonly string[]): Promise<InstanceExecResult>
  execAsRoot(cmd: string, args?: readonly string[]): Promise<InstanceExecResult>
  execStream(options: InstanceStreamOptions): Promise<InstanceStream>
  writeFile(path: string, content: string | Uint8Array, mode?: string): Promise<void>
  createTmuxSession(name: string, command?: readonly string[]): Promise<void>
  listTmuxSessions(): Promise<string[]>
  killTmuxSession(name: string): Promise<void>
  sendKeysToTmux(name: string, keys: string): Promise<void>
  captureTmuxPane(name: string, lines?: number): Promise<string>
  getMetrics(): Promise<InstanceMetrics>
  touch(): Promise<void>
  getLastActivity(): Date
  stop(): Promise<void>
}

export interface ProviderHealth {
  readonly healthy: boolean
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

export type ProviderEventType =
  | 'sandbox:creating'
  | 'sandbox:created'
  | 'sandbox:starting'
  | 'sandbox:started'
  | 'sandbox:idle'
  | 'sandbox:stopping'
  | 'sandbox:stopped'
  | 'sandbox:error'

export interface ProviderEvent {
  readonly type: ProviderEventType
  readonly sandboxId: string
  readonly projectId: string
  readonly error?: unknown
}

/** Makes and finds sandboxes, whatever they run on. */
export interface SandboxProvider {
  readonly name: string
  create(config: InstanceConfig, options?: { signal?: AbortSignal }): Promise<SandboxInstance>
  get(projectId: string): Promise<SandboxInstance | undefined>
  getById(id: string): Promise<SandboxInstance | undefined>
  list(): Promise<SandboxInstance[]>
  /** Finds again what an earlier life of this program made; what has ended is removed. */
  recover(): Promise<{ recovered: number; removed: number }>
  pullImage(image: string): Promise<void>
  isImageAvailable(image: string): Promise<boolean>
  healthCheck(): Promise<ProviderHealth>
  cleanup(filter?: { olderThan?: Date; status?: InstanceStatus }): Promise<number>
  on(listener: (event: ProviderEvent) => void): () => void
  off(listener: (event: ProviderEvent) => void): void
}
