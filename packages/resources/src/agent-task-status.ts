import * as z from 'zod'
import { taskEnvironmentSchema } from './agent-task-environment.js'
import { inputStatusSchema } from './agent-task-input.js'
import { conditionSchema, dateTime, int32, int64 } from './schema-parts.js'
import { checkSchema } from './task-parts.js'
import { planVerdicts, taskModes, taskOutcomes, taskPhases } from './task-words.js'

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
    environment: taskEnvironmentSchema
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
