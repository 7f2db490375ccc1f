/** What a page may import: types, schemas, builders and the client of the task API. Nothing here needs Node. */
export {
  CorralError,
  type ErrorCode,
  isErrorCode,
  TasksClient,
} from '@corral/protocol'
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
export { type Readiness, readinessOf, terminalReasons } from './readiness.js'
export { type SandboxPhase, type SandboxStatusView, statusOf } from './sandbox-status.js'
