export { type KubeFetch, loadKubeConfig } from '@corral/kube'
export { DaemonClient } from '@corral/protocol'
export {
  BuildError,
  type Sandbox,
  SandboxBuilder,
  type SandboxClaim,
  SandboxClaimBuilder,
  type SandboxClaimSpec,
  type SandboxClaimStatus,
  type SandboxSpec,
  type SandboxStatus,
  type SandboxTemplate,
  SandboxTemplateBuilder,
  type SandboxTemplateSpec,
  type SandboxWarmPool,
  SandboxWarmPoolBuilder,
  type SandboxWarmPoolSpec,
  type SandboxWarmPoolStatus,
  sandboxClaimSchema,
  sandboxClaimSpecSchema,
  sandboxClaimStatusSchema,
  sandboxSchema,
  sandboxSpecSchema,
  sandboxStatusSchema,
  sandboxTemplateSchema,
  sandboxTemplateSpecSchema,
  sandboxWarmPoolSchema,
  sandboxWarmPoolSpecSchema,
  sandboxWarmPoolStatusSchema,
} from '@corral/resources'
export { AgentSandboxClient, type AgentSandboxClientOptions } from './agent-sandbox-client.js'
export { ClaimCollection } from './claim-collection.js'
export type { ConnectionOptions, HttpConnectionOptions } from './connection/connection-options.js'
export type { CreateSandboxRequest, SandboxSource } from './create-sandbox.js'
export type { ClusterHealth, HealthProblem } from './health-check.js'
export { ProcessOutput } from './process-output.js'
export { AgentSandboxInstance } from './provider/agent-sandbox-instance.js'
export {
  AgentSandboxProvider,
  type AgentSandboxProviderOptions,
  createProvider,
} from './provider/agent-sandbox-provider.js'
export type * from './provider/sandbox-provider.js'
export { type Readiness, readinessOf, terminalReasons } from './readiness.js'
export { type InNamespace, ResourceCollection, type SelectOptions } from './resource-collection.js'
export { openReversePort, type ReversePort, type ReversePortOptions } from './reverse-port.js'
export type { FileEntry, ProcessSpec, RuntimeKind } from './runtime/sandbox-runtime.js'
export { type CreatorOptions, SandboxCollection } from './sandbox-collection.js'
export { connectPod, type SandboxConnection } from './sandbox-connection.js'
export { SandboxError } from './sandbox-error.js'
export type {
  ExecBufferedOptions,
  ExecOptions,
  ExecProcess,
  ExecResult,
  ExecStreamOptions,
} from './sandbox-exec.js'
export { FileListing, type ReadOptions, SandboxFiles } from './sandbox-files.js'
export { type PullOptions, type PushOptions, SandboxGit } from './sandbox-git.js'
export { type ExecCommandOptions, OwnedSandbox, SandboxHandle, type SandboxMetrics } from './sandbox-handle.js'
export type { SandboxRef } from './sandbox-object.js'
export { SandboxPorts } from './sandbox-ports.js'
export { type OutputPiece, type ProcessLimits, type ProcessResult, SandboxProcess } from './sandbox-process.js'
export { type BackgroundProcess, SandboxProcesses } from './sandbox-processes.js'
export type { SandboxPhase, SandboxStatusView } from './sandbox-status.js'
export { type SandboxTokenClaims, signSandboxToken } from './sandbox-token.js'
export { type Dial, type StreamFetch, streamFetch } from './stream-fetch.js'
export type { WaitOptions } from './wait-for.js'
export { WarmPoolCollection } from './warm-pool-collection.js'
