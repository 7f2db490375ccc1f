export {
  type AskPolicy,
  askPolicies,
  type IsolationTier,
  isFinalPhase,
  isolationTiers,
  type PlanVerdict,
  planVerdicts,
  type RetryStage,
  retryStages,
  type TaskMode,
  type TaskPhase,
  type TaskStage,
  taskModes,
  taskOutcomes,
  taskPhases,
  taskStages,
} from '@corral/resources/task-words'
export { anySignal } from './any-signal.js'
export { type PickTaskRequest, pickTaskRequestSchema, type TaskGroup, taskGroupSchema } from './attempt-api.js'
export { branchNameProblem } from './branch-name.js'
export {
  type Check,
  type CheckResult,
  type CheckRound,
  checkLimits,
  checkOutcomeSchema,
  checkOutcomes,
  checkResultSchema,
  checkRoundSchema,
  checkSchema,
  checksSchema,
  failedChecksPolicySchema,
  type TaskChecks,
  taskChecksSchema,
} from './check-api.js'
export {
  type AnswerQuestionRequest,
  type ApprovePlanRequest,
  answerQuestionRequestSchema,
  approvePlanRequestSchema,
  type MessageDelivery,
  messageDeliverySchema,
  messageText,
  type RejectPlanRequest,
  type RevisePlanRequest,
  rejectPlanRequestSchema,
  revisePlanRequestSchema,
  type TaskComment,
  type TaskMessageRequest,
  taskCommentSchema,
  taskMessageRequestSchema,
} from './conversation-api.js'
export { CorralError, errorBody, errorResponse } from './corral-error.js'
export {
  absolutePathSchema,
  type DirectoryListing,
  daemonLimits,
  daemonPort,
  daemonRoutes,
  directoryListingSchema,
  encodePath,
  type FileInfo,
  fileHeaders,
  fileInfoSchema,
  fileTypes,
  type ProcessExitRecord,
  type ProcessRecord,
  processExitSchema,
  processIdSchema,
  processListSchema,
  processRecordSchema,
  type RunnerTask,
  reverseHandshake,
  reverseHost,
  runnerTaskSchema,
  type SandboxWorkspace,
  type SignalName,
  type SignalRequest,
  type StartProcessRequest,
  signalNames,
  signalRequestSchema,
  startProcessRequestSchema,
  type TerminalSize,
  terminalSizeSchema,
} from './daemon-api.js'
export {
  type BytesIn,
  bootHeader,
  type DaemonCallOptions,
  DaemonClient,
  type Fetch,
  type WriteFileOptions,
} from './daemon-client.js'
export {
  type FileChange,
  type FileOperation,
  fileChangeSchema,
  fileOperationSchema,
  type SandboxBinding,
  type SandboxMetricsRecord,
  sandboxBindingSchema,
  sandboxMetricsSchema,
  type TreeEntry,
  treeEntrySchema,
} from './daemon-files-api.js'
export {
  type BuildEnvironmentRequest,
  buildEnvironmentRequestSchema,
  type EnvironmentBuildView,
  type EnvironmentEvents,
  type EnvironmentSettingsView,
  type EnvironmentView,
  environmentEventsSchema,
  environmentListSchema,
  environmentViewSchema,
  type RebuildEnvironmentRequest,
  rebuildEnvironmentRequestSchema,
} from './environment-api.js'
export { secretName, type ToolName, toolNames } from './environment-fields.js'
export {
  askedEgress,
  type BackgroundCommand,
  type EnvironmentRequest,
  type EnvironmentService,
  environmentFilePath,
  environmentFileSchema,
  environmentJsonSchema,
  environmentRequest,
  maxEnvironmentFileBytes,
} from './environment-file.js'
export { EnvironmentsClient } from './environments-client.js'
export { type ErrorCode, type ErrorCodeEntry, errorCodeEntry, errorCodes, isErrorCode } from './error-codes.js'
export { renderErrorsMarkdown } from './errors-markdown.js'
export { formatGitIdentity, type GitIdentity, gitIdentitySchema, parseGitIdentity } from './git-identity.js'
export { type GroupView, groupViewSchema } from './group-view.js'
export { issueWords } from './issue-words.js'
export {
  encodeOutputFrame,
  encodeOutputHeader,
  maxOutputPayloadBytes,
  OutputDecoder,
  OutputFormatError,
  type OutputFrame,
  type OutputStream,
  outputContentType,
  outputHeaderBytes,
} from './output-frames.js'
export type { FrameSource, OutputEvent, ReadOutputOptions } from './output-reader.js'
export {
  type AgentInfo,
  agentListSchema,
  type ConnectionCheck,
  connectionCheckSchema,
  type ObjectView,
  objectViewSchema,
  type PoolInfo,
  poolInfoSchema,
  poolListSchema,
  resizePoolRequestSchema,
  type SandboxInfo,
  type SecretInfo,
  type ShownKind,
  sandboxListSchema,
  secretListSchema,
  setSecretRequestSchema,
  shownKinds,
} from './platform-api.js'
export { encodeLineMessage, type LineMessage, LineMessages, processLineHost } from './process-line.js'
export {
  type CreateProjectRequest,
  createProjectRequestSchema,
  type PatchProjectRequest,
  type ProjectField,
  type ProjectSettings,
  type ProjectView,
  patchProjectRequestSchema,
  projectFields,
  projectListSchema,
  projectSettingsSchema,
  projectViewSchema,
  type ReplaceProjectRequest,
  replaceProjectRequestSchema,
} from './project-api.js'
export { ProjectsClient } from './projects-client.js'
export { credentialHint, credentialInUrl, redactUrls } from './repository-credentials.js'
export { boundedText, failureOf, wrapFailure } from './response-failure.js'
export {
  type AppliedChange,
  type ApplyHow,
  type ApplyRequest,
  type Artifact,
  type ArtifactList,
  appliedChangeSchema,
  applyRequestSchema,
  artifactLimits,
  artifactListSchema,
  artifactSchema,
  type ChangedFile,
  type ChangedFiles,
  changedFileSchema,
  changedFilesSchema,
  type FileRef,
  fileRefSchema,
} from './result-api.js'
export {
  type SandboxProviderInfo,
  type SandboxProviderSettings,
  sandboxProviderInfoSchema,
  sandboxProviderListSchema,
  sandboxProviderNameSchema,
  sandboxProviderSchema,
} from './sandbox-provider-api.js'
export {
  changedSettings,
  type KubeContextList,
  type KubeNameList,
  kubeContextListSchema,
  kubeNameListSchema,
  type PatchSettingsRequest,
  patchSettingsRequestSchema,
  type SandboxProviderName,
  type Settings,
  type SettingsView,
  sandboxProviders,
  settingsSchema,
  settingsViewSchema,
  type TestSettingsRequest,
  testSettingsRequestSchema,
} from './settings-api.js'
export { SettingsClient } from './settings-client.js'
export {
  type AgentChoice,
  agentChoiceOf,
  agentChoiceSchema,
  type CompleteTaskRequest,
  type CreateTaskRequest,
  type CreateTaskResponse,
  createTaskRequestSchema,
  createTaskResponseSchema,
  type ErrorBody,
  egressRuleSchema,
  errorBodySchema,
  type InjectedFile,
  injectedFileSchema,
  injectedPathSchema,
  isInjectablePath,
  projectNameSchema,
  type RetryTaskRequest,
  reservedLabels,
  retryTaskRequestSchema,
  taskLimits,
} from './task-api.js'
export {
  isTaskCause,
  type TaskCause,
  type TaskCauseCode,
  type TaskCauseEntry,
  type TaskEndPhase,
  taskCause,
  taskCauses,
} from './task-causes.js'
export {
  type AgentEvent,
  agentEventSchema,
  clipText,
  finalViewOf,
  isTerminalEvent,
  type ModelCallEvent,
  type TaskEvent,
  type TaskEventBody,
  taskEventBodySchema,
  taskEventSchema,
} from './task-events.js'
export type { TaskCallOptions } from './task-http.js'
export {
  type DiffStat,
  diffStatSchema,
  eventLimits,
  type TaskWarning,
  taskCauseSchema,
  taskPhaseSchema,
  taskStageSchema,
  taskWarningSchema,
  type Usage,
  usageSchema,
} from './task-state.js'
export { summaryOf, type TaskSummary, taskSummarySchema, titleOf } from './task-summary.js'
export {
  type TaskList,
  type TaskQuestion,
  type TaskTimes,
  type TaskView,
  taskListSchema,
  taskTimesSchema,
  taskViewSchema,
} from './task-view.js'
export {
  isTaskWarning,
  mergeWarnings,
  type TaskWarningCode,
  taskWarning,
  taskWarnings,
} from './task-warnings.js'
export { type BytesWanted, TasksClient, type TasksClientOptions } from './tasks-client.js'
export { isUnsent, UnsentError } from './unsent-error.js'
export {
  type OpenSessionRequest,
  openSessionRequestSchema,
  type SessionView,
  type StreamFrame,
  type StreamRequest,
  sessionViewSchema,
  streamRequestSchema,
  type TerminalFrame,
  terminalRequestSchema,
} from './web-api.js'
