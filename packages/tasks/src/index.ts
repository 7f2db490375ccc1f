export { agentOf } from './agent-spec.js'
export { claimFor, poolDefaults } from './agent-task/claim.js'
export { createUsageRecord, type UsageRecord } from './agent-task/usage-record.js'
export { type Broker, type BrokerOptions, startBroker } from './broker/broker.js'
export { type BrokeredTask, brokeredTask } from './broker/brokered-task.js'
export { type EndpointStore, fileEndpointStore } from './broker/endpoint-store.js'
export { modelCallEvent } from './broker/model-call.js'
export { createModelProviders, type ModelProviders } from './broker/model-providers.js'
export { filePrices, type Prices } from './broker/price-file.js'
export { createProviderHolds, type ProviderHolds } from './broker/provider-holds.js'
export { createTaskTokens, type TaskTokens } from './broker/task-token.js'
export { createEnvironmentService, type EnvironmentService } from './builds/environment-service.js'
export { configuredIdentity } from './commits/identity.js'
export { rememberIdentities } from './commits/identity-cache.js'
export { type DrainOptions, type DrainResult, drainTasks } from './drain-tasks.js'
export {
  type ElectedOptions,
  type ElectedTaskController,
  type ElectionOptions,
  electTaskController,
  taskLeaseName,
} from './elected-task-controller.js'
export { type ArchiveDirectory, openArchiveDirectory } from './environment/archive/archive-directory.js'
export { parseEnvironmentFile } from './environment/environment-file.js'
export {
  type EnvironmentGrants,
  fileEnvironmentGrants,
  type RepositoryGrants,
} from './environment/environment-grants.js'
export { foreignFiles, readForeignEnvironment } from './environment/foreign/read-foreign.js'
export type { PackageClients } from './environment/package-clients.js'
export { egressAnnotation } from './environment/phase-egress.js'
export {
  grantCommand,
  missingImages,
  missingResources,
  missingSecrets,
  missingWords,
} from './environment/task-environment.js'
export { versionFiles, type WantedTool, wantedTools } from './environment/tools/wanted-tools.js'
export type { EventLog, EventLogTail } from './event-log/event-log.js'
export type { Confine } from './git/confine.js'
export { createGit, type Git, GitError, type GitOptions } from './git/git.js'
export { writeGlobalConfig } from './git/global-config.js'
export { placeClient, type TaskClient } from './places/place-client.js'
export { fileProviderStore, type ProviderStore } from './places/provider-store.js'
export { type RelayOptions, relayedSandboxAccess } from './places/relayed-access.js'
export type { SandboxPlace, SandboxPlaces } from './places/sandbox-place.js'
export { advisePools, type PoolAdvice } from './pool-advice.js'
export { createProjectService, type ProjectService } from './project/project-service.js'
export { adoptRestoredRecords } from './records/adopt-restored.js'
export { directoryTaskRecords } from './records/directory-task-records.js'
export { memoryTaskRecords } from './records/memory-task-records.js'
export type { RecordPart, TaskRecord, TaskRecords } from './records/task-records.js'
export { hasGitLfs } from './repository/lfs-objects.js'
export { createRepository, type Repository } from './repository/repository.js'
export { parseRepositoryUrl, type RepositoryLocation } from './repository/repository-url.js'
export { type RestoreOptions, type RestoreResult, restoreTasks } from './restore-tasks.js'
export { type BringHome, createBringHome } from './results/bring-home.js'
export { quarantineTreeReader, type TreeReader } from './results/tree-reader.js'
export type { SandboxAccess, SandboxSession } from './sandbox/sandbox-session.js'
export { sdkSandboxAccess } from './sandbox/sdk-sandbox-access.js'
export { fileSecretStore, type SecretStore } from './secrets/secret-store.js'
export type { TaskController, TaskQueue } from './task-controller.js'
export type { TaskControllerOptions } from './task-controller-options.js'
export { type TaskDemand, taskDemand } from './task-demand.js'
export { TaskError } from './task-error.js'
export { createTaskFeed, type TaskFeed, type TaskListChange } from './task-feed.js'
export { promTaskGauges, promTaskMetrics, type TaskMetrics } from './task-metrics.js'
export { createTaskService, type TaskService } from './task-service.js'
export type { TaskServiceOptions } from './task-service-options.js'
export { phaseOf } from './task-state/stages.js'
export { taskLabel } from './task-state/task-marks.js'
export { createTaskTerminals, type TaskTerminal, type TaskTerminals } from './task-terminal.js'
export { newSpan, parseTraceparent, type TraceParent, traceparentOf } from './tracing/trace-context.js'
