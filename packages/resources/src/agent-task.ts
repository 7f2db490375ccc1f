import * as z from 'zod'
import { answerSchema, inputStatusSchema } from './agent-task-input.js'
import { conditionSchema, dateTime, int32, int64, typeMeta } from './schema-parts.js'
import { agentSchema, branchName, checkSchema, gitIdentitySchema, repositorySchema } from './task-parts.js'
import {
  askPolicies,
  defaultCheckpointSeconds,
  defaultSetupTimeoutSeconds,
  defaultTaskTimeoutSeconds,
  isolationTiers,
  planVerdicts,
  retryStages,
  taskModes,
  taskOutcomes,
  taskPhases,
} from './task-words.js'

export const agentTaskFileSchema = z.object({
  path: z.string().min(1).describe('Where the file goes, relative to the root of the repository.'),
  content: z.string().describe('What is in it, in the encoding named beside it.'),
  encoding: z.enum(['utf8', 'base64']).exactOptional().describe('How content is written; utf8 where unset.'),
  mode: int32().min(0).max(0o7777).exactOptional().describe('Permission bits; 0644 where unset.'),
})

const MUTABLE_SPEC_FIELDS = ['cancelRequested', 'keepSandbox', 'decision', 'messages', 'answers']

const continuationSchema = z.object({
  task: z.string().describe('Its name.'),
  uid: z.string().describe('Its uid, under which its record is kept.'),
  thread: z.string().describe('The name of the first task of the thread.'),
  branch: z.string().exactOptional().describe('The branch its work is on; unset where it changed nothing.'),
  commit: z.string().exactOptional().describe('The last commit of its work.'),
  baseBranch: z.string().exactOptional().describe('The branch its work started from.'),
  baseCommit: z.string().exactOptional().describe('The commit its work started from.'),
  sessionId: z.string().exactOptional().describe('The session of the agent, which is resumed.'),
  claimName: z.string().exactOptional().describe('The claim of its sandbox, where that was held.'),
})

const checksStatusSchema = z.object({
  declared: z.array(checkSchema).exactOptional().describe('Checks the repository declares.'),
  rounds: z
    .array(
      z.object({
        round: int32().min(1).describe('1 for the first.'),
        passed: z.boolean().describe('Whether all checks passed.'),
        startedAt: dateTime().describe('When the first check began.'),
        finishedAt: dateTime().describe('When the last check ended.'),
        results: z
          .array(
            z.object({
              name: z.string().describe('Of the check.'),
              outcome: z.enum(['passed', 'failed', 'timed_out']).describe('How it ended.'),
              exitCode: int32().exactOptional().describe('Its exit code.'),
              durationMs: int64().min(0).describe('How long it took.'),
              output: z.string().exactOptional().describe('The end of what it wrote.'),
            }),
          )
          .describe('One for every check.'),
      }),
    )
    .exactOptional()
    .meta({ 'x-kubernetes-list-type': 'atomic', description: 'Every round of checks so far.' }),
  repair: z
    .object({
      round: int32().min(1).describe('The round of checks it answers.'),
      startedAt: dateTime().describe('When the agent was sent back.'),
      agentEventsBefore: int64().min(0).describe('Events of the agent before it.'),
    })
    .exactOptional()
    .describe('The run of the agent that repairs what checks found; absent while none does.'),
  repairsMs: int64().min(0).exactOptional().describe('Time the agent used for repairs.'),
})

const toolSchema = z.object({
  name: z.string().describe('Such as go.'),
  version: z.string().describe('The version that is used.'),
  wantedBy: z.string().describe('The file that asks for it.'),
  bin: z.string().describe('Its directory for PATH; empty where it is on PATH by itself.'),
  env: z.record(z.string(), z.string()).exactOptional().describe('Variables it needs.'),
})

const backgroundSchema = z.object({
  name: z.string().describe('What it is called.'),
  run: z.string().exactOptional().describe('Its command.'),
  use: z.string().exactOptional().describe('The ready-made service it is instead.'),
  port: int32().min(1).max(65_535).exactOptional().describe('It is ready once it listens there.'),
  timeoutSeconds: int32().min(1).describe('How long it may take to be ready.'),
  env: z.record(z.string(), z.string()).exactOptional().describe('Variables for it.'),
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
      pool: z.string().exactOptional().describe('SandboxWarmPool to claim from.'),
      template: z.string().exactOptional().describe('SandboxTemplate to start from; not together with a pool.'),
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
  description: 'What is asked for. Only cancelRequested, keepSandbox, decision and messages may change.',
  'x-kubernetes-validations': Object.entries(specFields)
    .filter(([name]) => !MUTABLE_SPEC_FIELDS.includes(name))
    .map(([name, schema]) => ({
      rule: isOptional(schema) ? optionalUnchanged(name) : `self.${name} == oldSelf.${name}`,
      message: `${name} is immutable`,
    })),
})

const reachedAt = (what: string) => dateTime().exactOptional().describe(`When ${what}.`)

export const agentTaskStatusSchema = z
  .object({
    phase: z.enum(taskPhases).exactOptional().describe('Where the task stands, derived from the conditions.'),
    conditions: z
      .array(conditionSchema)
      .exactOptional()
      .meta({
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['type'],
        description: 'One for every stage that was reached; Succeeded ends the task.',
      }),
    observedGeneration: int64().min(0).exactOptional().describe('The generation of the spec this status is about.'),
    cause: z
      .object({
        code: z.string().describe('A code of the cause table.'),
        message: z.string().describe('What happened in this case.'),
        hint: z.string().exactOptional().describe('What to do next.'),
      })
      .exactOptional()
      .describe('Why the task did not succeed.'),
    outcome: z
      .enum(taskOutcomes)
      .exactOptional()
      .describe(
        'Whether the agent changed anything; partial where it was cut short and the work is what could be saved.',
      ),
    attempt: z
      .object({
        number: int32().min(1).describe('1 for the first.'),
        startedAt: dateTime().describe('When this attempt began.'),
        reason: z.string().describe('Why the one before it was given up.'),
      })
      .exactOptional()
      .describe('The attempt at a sandbox, where the first one was lost before the agent ran.'),
    sandbox: z
      .object({
        claimName: z.string().describe('The SandboxClaim.'),
        sandboxName: z.string().exactOptional().describe('The Sandbox it was given.'),
        podName: z.string().exactOptional().describe('The pod of that Sandbox.'),
        isolation: z.string().exactOptional().describe('The isolation tier it ran on.'),
        provider: z.string().exactOptional().describe('The provider it is from, where that is another cluster.'),
        kept: z
          .boolean()
          .exactOptional()
          .describe('It is kept until the task is deleted: work in it could not be taken out.'),
        heldUntil: dateTime()
          .exactOptional()
          .describe('Until when it is held for a follow-up, unless that has it or it was let go before.'),
        takenFrom: z.string().exactOptional().describe('The task that held it before.'),
      })
      .exactOptional()
      .describe('Where the task runs or ran.'),
    branch: z.string().exactOptional().describe('Branch of the work.'),
    baseBranch: z.string().exactOptional().describe('Branch the work started from.'),
    baseCommit: z.string().exactOptional().describe('Commit the work started from.'),
    commit: z.string().exactOptional().describe('Last commit of the work.'),
    pushed: z.boolean().exactOptional().describe('Whether the branch is in the repository.'),
    diffStat: z
      .object({
        filesChanged: int32().min(0).describe('Files that differ.'),
        insertions: int32().min(0).describe('Lines added.'),
        deletions: int32().min(0).describe('Lines removed.'),
      })
      .exactOptional()
      .describe('Size of the change.'),
    warnings: z
      .array(
        z.object({
          code: z.string().describe('A code of the warning table.'),
          message: z.string().describe('What happened and what to do.'),
          path: z.string().exactOptional().describe('The path of the repository it is about.'),
        }),
      )
      .exactOptional()
      .meta({
        'x-kubernetes-list-type': 'atomic',
        description: 'What did not fail the task but its owner should know.',
      }),
    artifacts: z
      .array(z.string())
      .exactOptional()
      .meta({ 'x-kubernetes-list-type': 'atomic', description: 'Names of files kept with the task.' }),
    exitCode: int32().exactOptional().describe('Exit code of the agent.'),
    run: z
      .object({
        number: int32().min(1).describe('1 for the first.'),
        mode: z.enum(taskModes).describe('Whether it works or plans.'),
        eventsBefore: int64().min(0).describe('Events of the agent in the log that are of earlier runs.'),
        usedMs: int64().min(0).describe('What earlier runs used of the timeout.'),
      })
      .exactOptional()
      .describe('The run of the agent this task is at, after the first.'),
    plan: z
      .object({
        revision: int32().min(1).describe('1 for the first plan; a revised one counts on.'),
        text: z.string().describe('What the agent means to do.'),
        proposedAt: dateTime().describe('When the agent had it.'),
        expiresAt: dateTime().describe('Until when it waits for a decision.'),
        verdict: z.enum(planVerdicts).exactOptional().describe('What was decided; unset while it waits.'),
        remark: z.string().exactOptional().describe('What was said with the decision.'),
        decidedAt: dateTime().exactOptional().describe('When it was decided.'),
      })
      .exactOptional()
      .describe('The plan of the agent.'),
    input: inputStatusSchema.exactOptional().describe('What the agent asked.'),
    readMessages: z
      .array(z.string())
      .exactOptional()
      .meta({ 'x-kubernetes-list-type': 'atomic', description: 'Messages the agent took up while it ran, by id.' }),
    session: z
      .object({
        id: z.string().describe('The agent’s own name for it.'),
        sizeBytes: int64().min(0).describe('Size of what is kept of it.'),
      })
      .exactOptional()
      .describe('The conversation of the agent, kept for a task that continues this one.'),
    checks: checksStatusSchema.exactOptional().describe('How the work was judged.'),
    egress: z.array(z.string()).exactOptional().describe('Destinations that were granted.'),
    refused: z
      .array(
        z.object({
          host: z.string().describe('The name or address that was asked for.'),
          port: int32().exactOptional().describe('The port, where one was asked for.'),
          reason: z
            .enum(['NotAllowed', 'TooManyNames', 'Unresolved', 'ForbiddenAddress', 'Unreachable'])
            .describe('Why it was not reached.'),
          count: int32().min(0).describe('How often it was asked for.'),
          process: z.string().exactOptional().describe('The process that asked first, where it could be seen.'),
        }),
      )
      .exactOptional()
      .meta({ 'x-kubernetes-list-type': 'atomic', description: 'Destinations that were asked for and not reached.' }),
    environment: z
      .object({
        commit: z.string().describe('The commit its file was read from.'),
        source: z.string().exactOptional().describe('The file it was read from.'),
        setup: z.string().exactOptional().describe('The set-up script.'),
        update: z.string().exactOptional().describe('What is run instead on a snapshot with other lock files.'),
        env: z.record(z.string(), z.string()).exactOptional().describe('Variables for set-up and the agent.'),
        path: z.array(z.string()).exactOptional().describe('Directories of the repository that come first on PATH.'),
        tools: z
          .array(toolSchema)
          .exactOptional()
          .meta({ 'x-kubernetes-list-type': 'atomic', description: 'Toolchains that come first on PATH.' }),
        services: z
          .array(backgroundSchema)
          .exactOptional()
          .meta({ 'x-kubernetes-list-type': 'atomic', description: 'Services that run beside the work.' }),
        start: z
          .array(backgroundSchema)
          .exactOptional()
          .meta({ 'x-kubernetes-list-type': 'atomic', description: 'Commands that run beside the agent.' }),
        secrets: z
          .array(
            z.object({
              name: z.string().describe('Of a secret of the platform.'),
              env: z.string().describe('The variable set-up finds it in.'),
            }),
          )
          .exactOptional()
          .meta({ 'x-kubernetes-list-type': 'atomic', description: 'Secrets that set-up is given.' }),
        setupEgress: z.array(z.string()).exactOptional().describe('What set-up may reach.'),
        egress: z.array(z.string()).exactOptional().describe('What the agent may reach.'),
        image: z.string().exactOptional().describe('The imported image whose root file system its sandbox has.'),
        resources: z
          .object({
            cpu: z.string().exactOptional().describe('Cores.'),
            memory: z.string().exactOptional().describe('Of all its processes together.'),
            disk: z.string().exactOptional().describe('Workspace, HOME and /tmp together.'),
          })
          .exactOptional()
          .describe('Limits of the sandbox in place of its template’s.'),
        snapshot: z
          .object({
            name: z.string().describe('As the annotation corral.dev/snapshot of its pod names it.'),
            environment: z.string().describe('The Environment it belongs to.'),
            key: z.string().describe('The key the task needed.'),
            exact: z.boolean().describe('Whether it has that key: nothing is left to set up. Else update is run.'),
            builtAt: dateTime().describe('When it was built.'),
          })
          .exactOptional()
          .describe('The snapshot the task was given.'),
        failure: z
          .object({
            code: z.string().describe('A code of the cause table.'),
            message: z.string().describe('What happened, with the last lines of its output.'),
            hint: z.string().exactOptional().describe('What to do next.'),
          })
          .exactOptional()
          .describe('Why the build the task waited for failed.'),
      })
      .exactOptional()
      .describe('What .corral/environment.yaml of the repository gives the task.'),
    usage: z
      .object({
        model: z.string().exactOptional().describe('The model that wrote most.'),
        inputTokens: int64().min(0).describe('Tokens sent.'),
        outputTokens: int64().min(0).describe('Tokens received.'),
        cacheReadTokens: int64().min(0).describe('Tokens read from the provider’s cache.'),
        cacheWriteTokens: int64().min(0).describe('Tokens written to the provider’s cache.'),
        costUsd: z.number().min(0).exactOptional().describe('Price in US dollars; absent where one is not known.'),
      })
      .exactOptional()
      .describe('What the model broker counted.'),
    times: z
      .object({
        queuedAt: reachedAt('the task was accepted'),
        provisioningAt: reachedAt('it was admitted'),
        sandboxReadyAt: reachedAt('its sandbox was ready'),
        repositoryReadyAt: reachedAt('the repository was checked out'),
        setupDoneAt: reachedAt('the set-up command had ended'),
        planApprovedAt: reachedAt('the plan was approved'),
        runningAt: reachedAt('the agent was started'),
        agentFinishedAt: reachedAt('the agent had ended'),
        checksDoneAt: reachedAt('the last check had ended'),
        resultCollectedAt: reachedAt('the result was accepted'),
        pushedAt: reachedAt('the branch was pushed'),
        finishedAt: reachedAt('the task had ended'),
      })
      .exactOptional()
      .describe('When each stage was reached.'),
    lastEventSequence: int64().min(0).exactOptional().describe('Sequence of the last event in the log.'),
  })
  .describe('What became of it. Written by the task controller.')

export const agentTaskSchema = z
  .object({
    ...typeMeta('corral.dev/v1alpha1', 'AgentTask'),
    spec: agentTaskSpecSchema,
    status: agentTaskStatusSchema.exactOptional(),
  })
  .describe('A piece of work for a coding agent: repository, prompt and agent in; branch, diff and cost out.')

export type AgentTask = z.infer<typeof agentTaskSchema>
export type AgentTaskSpec = z.infer<typeof agentTaskSpecSchema>
export type AgentTaskStatus = z.infer<typeof agentTaskStatusSchema>
export type AgentTaskFile = z.infer<typeof agentTaskFileSchema>

function isOptional(schema: z.ZodType): boolean {
  return schema._zod.optin === 'optional'
}

function optionalUnchanged(name: string): string {
  return `has(self.${name}) == has(oldSelf.${name}) && (!has(self.${name}) || self.${name} == oldSelf.${name})`
}
