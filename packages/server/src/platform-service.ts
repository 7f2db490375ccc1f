import type {
  AgentInfo,
  ConnectionCheck,
  CreateTaskRequest,
  ObjectView,
  PoolInfo,
  SandboxInfo,
  SandboxProviderInfo,
  SecretInfo,
  ShownKind,
} from '@corral/protocol'
import type { SettingsService } from './settings-service.js'

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
  readonly settings: SettingsService
  /** Where sandboxes of tasks may come from. */
  sandboxProviders(): Promise<SandboxProviderInfo[]>
  /** The same checks as for the settings, on the cluster of another provider. */
  providerChecks(name: string, signal: AbortSignal): AsyncIterable<ConnectionCheck>
  /** A task that needs neither key nor agent; undefined where the platform takes no repositories of its own disk. */
  demo(): Promise<CreateTaskRequest | undefined>
}
