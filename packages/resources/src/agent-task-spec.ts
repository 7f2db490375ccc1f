import * as z from 'zod'
import { answerSchema } from './agent-task-input.js'
import { dateTime, int32, int64, objectName } from './schema-parts.js'
import { agentSchema, branchName, checkSchema, gitIdentitySchema, repositorySchema } from './task-parts.js'
import {
  askPolicies,
  defaultCheckpointSeconds,
  defaultSetupTimeoutSeconds,
  defaultTaskTimeoutSeconds,
  highestPriority,
  isolationTiers,
  lowestPriority,
  planVerdicts,
  retryStages,
  taskModes,
} from './task-words.js'

export const agentTaskFileSchema = z.object({
  path: z.string().min(1).describe('Where the file goes, relative to the root of the repository.'),
  content: z.string().describe('What is in it, in the encoding named beside it.'),
  encoding: z.enum(['utf8', 'base64']).exactOptional().describe('How content is written; utf8 where unset.'),
  mode: int32().min(0).max(0o7777).exactOptional().describe('Permission bits; 0644 where unset.'),
})

const MUTABLE_SPEC_FIELDS = ['cancelRequested', 'keepSandbox', 'priority', 'decision', 'messages', 'answers']

const continuationSchema = z.object({
  task: z.string().describe('Its name.'),
  uid: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,64}$/)
    .describe('Its uid, under which its record is kept.'),
  thread: z.string().describe('The name of the first task of the thread.'),
  branch: z.string().exactOptional().describe('The branch its work is on; unset where it changed nothing.'),
  commit: z.string().exactOptional().describe('The last commit of its work.'),
  baseBranch: z.string().exactOptional().describe('The branch its work started from.'),
  baseCommit: z.string().exactOptional().describe('The commit its work started from.'),
  sessionId: z.string().exactOptional().describe('The session of the agent, which is resumed.'),
  claimName: z.string().exactOptional().describe('The claim of its sandbox, where that was held.'),
})

/** Attempts at the same thing. Every one names them all, so that any of them is enough to make the others. */
const groupSchema = z.object({
  name: z.string().describe('The name all attempts share.'),
  number: int32().min(1).describe('Which of them this is, counted from 1.'),
  branch: z.string().describe('The branch that was asked for; it goes to the attempt that is picked.'),
  agents: z.array(agentSchema).min(1).describe('Who makes each attempt.'),
  pick: int32()
    .min(1)
    .exactOptional()
    .describe('Set on a task that only pushes the attempt that was picked: how often that was done.'),
})

const specFields = {
  repository: repositorySchema.describe('The repository to work on.'),
  baseBranch: branchName().exactOptional().describe('Branch to start from; the default branch where unset.'),
  newBranch: branchName().exactOptional().describe('Branch for the work; corral/<name of the task> where unset.'),
  prompt: z.string().min(1).describe('What the agent shall do.'),
  agent: agentSchema.describe('Who does the work.'),
  instructions: z
    .string()
    .exactOptional()
    .describe('Said to the agent beside the instruction files of the repository.'),
  mcpServers: z
    .array(
      z.object({
        name: z.string().min(1).describe('What the agent calls it.'),
        command: z.string().exactOptional().describe('A program inside the sandbox.'),
        args: z.array(z.string()).exactOptional().describe('Its arguments.'),
        env: z.record(z.string(), z.string()).exactOptional().describe('Its environment.'),
        url: z.string().exactOptional().describe('An address instead of a program; it needs granted egress.'),
        headers: z.record(z.string(), z.string()).exactOptional().describe('Headers to send there.'),
      }),
    )
    .exactOptional()
    .describe('Servers of the Model Context Protocol for the agent.'),
  limits: z
    .object({
      maxTokens: int64().min(1).exactOptional().describe('Tokens sent and received.'),
      maxCostUsd: z.number().min(0).exactOptional().describe('Price in US dollars.'),
    })
    .exactOptional()
    .describe('What the task may spend on models; over it the agent is ended and its work kept.'),
  sandbox: z
    .object({
      pool: objectName().exactOptional().describe('SandboxWarmPool to claim from.'),
      template: objectName().exactOptional().describe('SandboxTemplate to start from; not together with a pool.'),
      provider: z
        .string()
        .max(63)
        .exactOptional()
        .describe('Provider of the sandbox; the cluster that keeps the task where unset.'),
    })
    .exactOptional()
    .describe('Where it is done; the pool "default" where unset.'),
  runtimeClassName: z
    .string()
    .max(253)
    .exactOptional()
    .describe('RuntimeClass its pod must have; the task fails where the sandbox it got has another one.'),
  minimumTier: z
    .enum(isolationTiers)
    .exactOptional()
    .describe('The weakest isolation tier it may run on; any where unset.'),
  project: z
    .string()
    .max(63)
    .exactOptional()
    .describe(
      'The Project it belongs to. What that gave is in the other fields: later edits of it change nothing here.',
    ),
  author: gitIdentitySchema.exactOptional().describe('Author of its commits; the platform’s own choice where unset.'),
  committer: gitIdentitySchema
    .exactOptional()
    .describe('Committer of its commits; the platform’s own choice where unset.'),
  sign: z
    .boolean()
    .exactOptional()
    .describe('Whether its commits are signed with the key of the platform’s user, outside the sandbox.'),
  environmentFile: z
    .string()
    .max(1024)
    .exactOptional()
    .describe('Path of the environment file in the repository; .corral/environment.yaml where unset.'),
  timeoutSeconds: int32()
    .min(1)
    .exactOptional()
    .meta({ default: defaultTaskTimeoutSeconds, description: 'Time the agent has, counted from its start.' }),
  priority: int32().min(lowestPriority).max(highestPriority).exactOptional().meta({
    default: 0,
    description:
      'Among the tasks that wait for a place the highest goes first, the oldest of those with the same. It ends no task that runs.',
  }),
  files: z
    .array(agentTaskFileSchema)
    .exactOptional()
    .describe('Files written into the checkout before the agent runs.'),
  setup: z.string().exactOptional().describe('Command to run before the agent; .corral/setup of the repository else.'),
  part: z.string().exactOptional().describe('The part of the environment of the repository to set up.'),
  useSnapshot: z
    .boolean()
    .exactOptional()
    .describe('False: the task sets itself up from nothing, whatever its environment has built.'),
  setupTimeoutSeconds: int32()
    .min(1)
    .exactOptional()
    .meta({ default: defaultSetupTimeoutSeconds, description: 'Time the set-up command has.' }),
  checkpointSeconds: int32().min(0).exactOptional().meta({
    default: defaultCheckpointSeconds,
    description: 'How often the state of the work is taken out while the agent runs; 0 for never.',
  }),
  checks: z
    .array(checkSchema)
    .exactOptional()
    .describe('Commands that judge the work; those the repository declares where unset.'),
  checkRounds: int32()
    .min(0)
    .max(10)
    .exactOptional()
    .describe('How often the agent is sent back with the output of checks that failed; 2 where unset.'),
  onFailedChecks: z
    .enum(['push', 'no-push'])
    .exactOptional()
    .describe('What becomes of a branch whose checks still fail; pushed where unset.'),
  artifacts: z
    .array(z.string())
    .exactOptional()
    .describe('Files and directories of the checkout that are kept with the task.'),
  egress: z
    .array(z.string())
    .exactOptional()
    .describe('What the task may reach: host:port each, or the word packages for the package mirror.'),
  setupEgress: z
    .array(z.string())
    .exactOptional()
    .describe('What set-up may reach beside egress; it is closed before the agent starts.'),
  mode: z
    .enum(taskModes)
    .exactOptional()
    .describe('plan: the agent plans and changes nothing before its plan is approved; work where unset.'),
  holdSandboxSeconds: int32()
    .min(0)
    .exactOptional()
    .describe(
      'How long the sandbox is kept while the task waits for a decision (300 where unset), and after its end for a follow-up (0 where unset).',
    ),
  planExpirySeconds: int32()
    .min(1)
    .exactOptional()
    .describe('How long a plan waits for a decision; a day where unset.'),
  decision: z
    .object({
      revision: int32().min(1).describe('The revision of the plan it is about.'),
      verdict: z.enum(planVerdicts).describe('What becomes of the plan.'),
      plan: z.string().exactOptional().describe('The plan as it was changed before it was approved.'),
      remark: z.string().exactOptional().describe('What the agent is told with it.'),
      at: dateTime().describe('When it was made.'),
    })
    .exactOptional()
    .describe('What was decided about the plan.'),
  messages: z
    .array(
      z.object({
        id: z.string().describe('Names the message.'),
        text: z.string().describe('What was said.'),
        mode: z.enum(taskModes).exactOptional().describe('The mode of the follow-up.'),
        newBranch: z.string().exactOptional().describe('The branch of the follow-up.'),
        steer: z.boolean().exactOptional().describe('To be given to the agent while it runs, if it still reads it.'),
        at: dateTime().describe('When it was said.'),
      }),
    )
    .exactOptional()
    .describe('What was said while the task ran; what the agent did not read becomes a follow-up when it has ended.'),
  ask: z
    .enum(askPolicies)
    .exactOptional()
    .describe('What the agent asks a person: input for what it wants to know, always for permissions too; never else.'),
  questionExpirySeconds: int32()
    .min(1)
    .exactOptional()
    .describe('How long a question waits for an answer; a day where unset.'),
  answers: z.array(answerSchema).exactOptional().describe('What the agent was answered, the latest last.'),
  cancelRequested: z.boolean().exactOptional().describe('Set to true to end the task; work done so far is kept.'),
  keepSandbox: z.boolean().exactOptional().describe('Keep the sandbox of a failed task until the task is deleted.'),
  retryOf: z.string().exactOptional().describe('The task this one repeats.'),
  retry: z
    .object({
      from: z.enum(retryStages).describe('Where it begins with what the repeated task kept.'),
      uid: z.string().describe('The uid of the repeated task, under which its record is kept.'),
      baseCommit: z
        .string()
        .exactOptional()
        .describe('The commit to start from; where the base branch stands if unset.'),
      commit: z.string().exactOptional().describe('The commit of the repeated task to push, or to go on from.'),
      partial: z.boolean().exactOptional().describe('Whether that commit is work of an agent that was cut short.'),
      replaces: z
        .array(z.string())
        .exactOptional()
        .describe('Commits of the repeated tasks: a branch that stands at one of them is theirs and may be replaced.'),
    })
    .exactOptional()
    .describe('How it repeats it.'),
  continues: continuationSchema.exactOptional().describe('The ended task this one goes on from.'),
  group: groupSchema.exactOptional().describe('The attempts this task is one of.'),
  idempotencyKey: z.string().exactOptional().describe('Digest of the request this task was made from.'),
}

export const agentTaskSpecSchema = z.object(specFields).meta({
  description: `What is asked for. Only ${MUTABLE_SPEC_FIELDS.join(', ')} may change.`,
  'x-kubernetes-validations': Object.entries(specFields)
    .filter(([name]) => !MUTABLE_SPEC_FIELDS.includes(name))
    .map(([name, schema]) => ({
      rule: isOptional(schema) ? optionalUnchanged(name) : `self.${name} == oldSelf.${name}`,
      message: `${name} is immutable`,
    })),
})

function isOptional(schema: z.ZodType): boolean {
  return schema._zod.optin === 'optional'
}

function optionalUnchanged(name: string): string {
  return `has(self.${name}) == has(oldSelf.${name}) && (!has(self.${name}) || self.${name} == oldSelf.${name})`
}
