/**
 * The words of a task, each defined once. Without schemas, and exported apart (`@corral/resources/task-words`), so that
 * browsers and the daemon can have them without loading every kind of Kubernetes.
 */

/** A task's life in one word, in order; the last four are final. In the waiting ones a person decides what comes next. */
export const taskPhases = [
  'QUEUED',
  'PROVISIONING',
  'RUNNING',
  'WAITING_APPROVAL',
  'WAITING_INPUT',
  'SUCCEEDED',
  'FAILED',
  'TIMED_OUT',
  'CANCELLED',
] as const
export type TaskPhase = (typeof taskPhases)[number]

export const finalTaskPhases = ['SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELLED'] as const
export type FinalTaskPhase = (typeof finalTaskPhases)[number]

/** Whether a task in this phase never changes again. A task without a phase has not been seen yet. */
export function isFinalPhase(phase: TaskPhase | undefined): phase is FinalTaskPhase {
  return (finalTaskPhases as readonly (string | undefined)[]).includes(phase)
}

/** Whether the agent changed anything. */
export const taskOutcomes = ['changes', 'no_changes', 'partial'] as const

/** The stages of a task as its events name them, in order. */
export const taskStages = [
  'claim',
  'sandbox',
  'repository',
  'setup',
  'agent',
  'checks',
  'result',
  'push',
  'cleanup',
] as const
export type TaskStage = (typeof taskStages)[number]

/** The stages of a task as its conditions record them, in order. */
export const taskStageConditions = [
  'Admitted',
  'SandboxReady',
  'RepositoryReady',
  'SetupDone',
  'PlanApproved',
  'AgentStarted',
  'AgentFinished',
  'ChecksDone',
  'ResultCollected',
  'Pushed',
] as const
export type TaskStageCondition = (typeof taskStageConditions)[number]

/** The condition that ends a task: True or False, with the cause as its reason. Absent while it lives. */
export const taskEndCondition = 'Succeeded'

/** Where a retry begins: at the push of work that is kept, at the agent on the same base, or anew. */
export const retryStages = ['push', 'agent', 'start'] as const
export type RetryStage = (typeof retryStages)[number]

/** Whether the agent works, or plans first and changes nothing before its plan is approved. */
export const taskModes = ['work', 'plan'] as const
export type TaskMode = (typeof taskModes)[number]

/** What may be said to a plan. */
export const planVerdicts = ['approve', 'revise', 'reject'] as const
export type PlanVerdict = (typeof planVerdicts)[number]

/** What an agent asks a person: nothing, what it wants to know, or for every permission as well. */
export const askPolicies = ['never', 'input', 'always'] as const
export type AskPolicy = (typeof askPolicies)[number]

/** The condition of a task whose agent asked something: Unknown while an answer is missing, True once there is none missing. */
export const taskInputCondition = 'InputGiven'

/** How long a question waits for an answer where its task does not say. */
export const defaultQuestionExpirySeconds = 24 * 60 * 60

/** How long a task that waits for a decision keeps its sandbox where it does not say. */
export const defaultHoldSandboxSeconds = 300

/** How long a plan waits for a decision where its task does not say. */
export const defaultPlanExpirySeconds = 24 * 60 * 60

/** Time a set-up command has where its task does not say. */
export const defaultSetupTimeoutSeconds = 20 * 60

/** How often the work of a running agent is taken out where its task does not say. */
export const defaultCheckpointSeconds = 120

/** Time an agent has where its task does not say. */
export const defaultTaskTimeoutSeconds = 30 * 60

/** Priorities of waiting tasks; 0 for one that names none. */
export const lowestPriority = -1000
export const highestPriority = 1000

/** The word that grants a task the package mirror of the platform, beside destinations written as host:port. */
export const packagesGrant = 'packages'

/** Ways of isolating the pods of tasks on one machine, the weakest first. */
export const isolationTiers = ['process', 'bubblewrap', 'gvisor'] as const
export type IsolationTier = (typeof isolationTiers)[number]

/** Whether a tier is at least as strong as another one. An unknown tier is weaker than any. */
export function isAsStrong(tier: string, minimum: IsolationTier): boolean {
  return isolationTiers.indexOf(tier as IsolationTier) >= isolationTiers.indexOf(minimum)
}

/** On an AgentTask: the Project it belongs to. */
export const projectLabel = 'corral.dev/project'

/** What a build of an environment is doing, or how it ended. */
export const buildStates = ['Starting', 'Running', 'Succeeded', 'Failed'] as const

export { isImageName } from './pod-image.js'
export { isResourceAmount, leastResources, type SandboxResources } from './pod-resources.js'
