export { loadKubeConfig } from '@corral/kube'
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
export type { CreateSandboxRequest, SandboxSource } from './create-sandbox.js'
export type { ClusterHealth } from './health-check.js'
export { type Readiness, readinessOf, terminalReasons } from './readiness.js'
export { type InNamespace, ResourceCollection, type SelectOptions } from './resource-collection.js'
export { SandboxCollection, type SandboxRef } from './sandbox-collection.js'
export { connectPod, type SandboxConnection } from './sandbox-connection.js'
export { SandboxError } from './sandbox-error.js'
export type {
  ExecBufferedOptions,
  ExecOptions,
  ExecProcess,
  ExecResult,
  ExecStreamOptions,
} from './sandbox-exec.js'
export { OwnedSandbox, SandboxFiles, SandboxHandle } from './sandbox-handle.js'
export { type Dial, type StreamFetch, streamFetch } from './stream-fetch.js'
export type { WaitOptions } from './wait-for.js'
