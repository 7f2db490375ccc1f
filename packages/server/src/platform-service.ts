import type {
  AgentInfo,
  ConnectionCheck,
  CreateTaskRequest,
  ObjectView,
  PoolInfo,
  SandboxInfo,
  SecretInfo,
  ShownKind,
} from '@corral/protocol'

/** What pages show and change of the platform itself. */
export interface PlatformService {
  agents(): Promise<AgentInfo[]>
  secrets(): Promise<SecretInfo[]>
  setSecret(name: string, value: string): Promise<void>
  removeSecret(name: string): Promise<void>
  sandboxes(): Promise<SandboxInfo[]>
  pools(): Promise<PoolInfo[]>
  resizePool(name: string, replicas: number): Promise<PoolInfo>
  object(kind: ShownKind, name: string): Promise<ObjectView>
  checks(signal: AbortSignal): AsyncIterable<ConnectionCheck>
  /** A task that needs neither key nor agent; undefined where the platform takes no repositories of its own disk. */
  demo(): Promise<CreateTaskRequest | undefined>
}
