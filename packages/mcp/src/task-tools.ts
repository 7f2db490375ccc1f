import { setTimeout } from 'node:timers/promises'
import { isFinalPhase, type TasksClient, type TaskView } from '@corral/protocol'
import type { McpServer } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { toolInput } from './tool-input.js'
import { toolResult } from './tool-result.js'

const taskId = z.string().min(1).describe('the id that create_task answered')
const lookEveryMs = 1_000
/** A task in these goes on when a person has decided. */
const waitsForPerson: ReadonlySet<string> = new Set(['WAITING_INPUT', 'WAITING_APPROVAL'])
const maxDiffCharacters = 200_000

/** Tasks for an agent that delegates: it starts another agent on a repository and takes the result. */
export function addTaskTools(server: McpServer, tasks: TasksClient): void {
  server.registerTool(
    'create_task',
    {
      title: 'Start a coding agent on a repository',
      description:
        'A sandbox is claimed, the repository checked out, the agent works, and its commits are pushed as a branch. Answers at once; follow with wait_task.',
      inputSchema: toolInput({
        repo: z.string().min(1).optional().describe('URL or path of the git repository; not needed with a project'),
        project: z.string().min(1).optional().describe('a project, which gives what is not said here'),
        task: z.string().min(1).describe('what the agent is to do'),
        agent: z.string().min(1).optional().describe('name of an agent that is installed'),
        command: z.string().min(1).optional().describe('a command line that runs instead of an agent'),
        base_branch: z.string().min(1).optional(),
        new_branch: z.string().min(1).optional(),
        timeout_seconds: z.int().min(1).optional(),
        ask: z
          .enum(['never', 'input', 'always'])
          .optional()
          .describe('what the agent may ask; answered with answer_task'),
      }),
      outputSchema: z.object({ id: z.string(), status: z.string() }),
    },
    ({ command, agent, ...request }) =>
      toolResult(async () => {
        const chosen = command === undefined ? agent : { name: 'command', command }
        const { id, status } = await tasks.create({
          ...withoutUndefined(request),
          ...(chosen === undefined ? {} : { agent: chosen }),
        })
        return { id, status }
      }),
  )

  server.registerTool(
    'get_task',
    {
      title: 'Where a task stands',
      inputSchema: toolInput({ id: taskId }),
      annotations: { readOnlyHint: true },
    },
    ({ id }) => toolResult(async () => summary(await tasks.get(id))),
  )

  server.registerTool(
    'list_tasks',
    {
      title: 'Latest tasks',
      inputSchema: toolInput({ limit: z.int().min(1).max(100).default(20) }),
      annotations: { readOnlyHint: true },
    },
    ({ limit }) => toolResult(async () => ({ tasks: (await tasks.list({ limit })).tasks.map(summary) })),
  )

  server.registerTool(
    'wait_task',
    {
      title: 'Wait for a task',
      description:
        'Waits until the task has ended, asks something, or the time is over, and answers where it stands then.',
      inputSchema: toolInput({ id: taskId, timeout: z.int().min(1).max(600).default(60).describe('seconds') }),
      annotations: { readOnlyHint: true },
    },
    ({ id, timeout }, { mcpReq }) =>
      toolResult(async () => {
        const { signal } = mcpReq
        const untilMs = Date.now() + timeout * 1000
        for (;;) {
          const view = await tasks.get(id, { signal })
          const isOver = isFinalPhase(view.status) || waitsForPerson.has(view.status)
          if (isOver || Date.now() >= untilMs) return summary(view)
          // Cancelled: without the signal every call that was given up goes on asking until its time is over.
          await setTimeout(lookEveryMs, undefined, { signal })
        }
      }),
  )

  server.registerTool(
    'send_message',
    {
      title: 'Go on from a task',
      description:
        'To an ended task: a follow-up on the same branch with the memory of the agent. To one that runs: told to its agent where that can take it (`steered`), else a follow-up at its end (`queued`).',
      inputSchema: toolInput({ id: taskId, task: z.string().min(1).describe('what to do next') }),
    },
    ({ id, task }) => toolResult(async () => ({ ...(await tasks.send(id, { task })) })),
  )

  server.registerTool(
    'answer_task',
    {
      title: 'Answer a question of the agent',
      description: 'The task is WAITING_INPUT until then; get_task shows its questions with their ids and options.',
      inputSchema: toolInput({
        id: taskId,
        question: z.string().min(1).describe('id of the question'),
        option: z.string().min(1).optional().describe('id of one of its options'),
        answer: z.string().min(1).optional().describe('in words, where there is no option'),
      }),
    },
    ({ id, ...request }) => toolResult(async () => summary(await tasks.answer(id, withoutUndefined(request)))),
  )

  server.registerTool(
    'cancel_task',
    {
      title: 'Cancel a task',
      inputSchema: toolInput({ id: taskId }),
      annotations: { destructiveHint: true },
    },
    ({ id }) => toolResult(async () => summary(await tasks.cancel(id))),
  )

  server.registerTool(
    'get_task_diff',
    {
      title: 'What a task changed',
      description: 'The patch, cut after 200,000 characters.',
      inputSchema: toolInput({ id: taskId }),
      outputSchema: z.object({ diff: z.string(), truncated: z.boolean() }),
      annotations: { readOnlyHint: true },
    },
    ({ id }) => toolResult(() => diffOf(tasks, id)),
  )
}

async function diffOf(tasks: TasksClient, id: string): Promise<{ diff: string; truncated: boolean }> {
  const decoder = new TextDecoder()
  let diff = ''
  for await (const bytes of tasks.diff(id)) {
    diff += decoder.decode(bytes, { stream: true })
    if (diff.length > maxDiffCharacters) return { diff: diff.slice(0, maxDiffCharacters), truncated: true }
  }
  return { diff, truncated: false }
}

/** The parts of a task's view that a model needs; the rest is in the platform. */
function summary(view: TaskView): Record<string, unknown> {
  const { id, status, repo, task, branch, commit, outcome, cause, diff_stat, warnings, continues, waiting } = view
  const { questions } = view
  const result = { branch, commit, outcome, cause, diff_stat, warnings }
  const parts = { id, status, repo, task, ...result, continues, waiting, questions }
  return withoutUndefined(parts)
}

function withoutUndefined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, given]) => given !== undefined)) as never
}
