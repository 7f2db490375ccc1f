import type {
  AgentChoice,
  CompleteTaskRequest,
  CreateTaskRequest,
  MessageDelivery,
  RetryTaskRequest,
  TaskEvent,
  TaskMessageRequest,
  TaskPhase,
  TaskView,
} from '@corral/protocol'
import {
  type AgentTask,
  AgentTasks,
  isAlreadyExists,
  isConflict,
  isNotFound,
  projectLabel,
  type Stored,
} from '@corral/resources'
import { agentSpecOf } from './agent-spec.js'
import { type AttemptService, type CreatedTask, createAttemptService } from './attempts/attempt-service.js'
import { makeSiblings } from './attempts/attempts.js'
import { endAfterRecord } from './event-log/end-after-record.js'
import { type HeldService, releaseSandbox } from './held/release.js'
import { placedRequest, type Seen } from './placed-request.js'
import { agentRunOf, logPartOf } from './plan-approval/agent-run.js'
import { completeRequest, withDefaults } from './project/project-request.js'
import { sandboxWithRuntime } from './project/sandbox-choice.js'
import type { TaskRecord } from './records/task-records.js'
import { checkAgent, checkCapabilities, checkRequest, identityFor } from './request-checks.js'
import { createTaskResults, type TaskResults } from './results/task-results.js'
import { createTaskDecisions, type TaskDecisions } from './task-decisions.js'
import { TaskError } from './task-error.js'
import { digest, groupNameFor, nameFor } from './task-name.js'
import { acceptedTimes, taskPage } from './task-page.js'
import { taskFrom } from './task-request.js'
import { type Retry, retryOf } from './task-retry.js'
import type { TaskServiceOptions } from './task-service-options.js'
import { attemptName } from './task-state/group.js'
import { isFinished, phaseOf } from './task-state/stages.js'
import { taskView } from './task-view.js'
import { followUpOf } from './thread/follow-up.js'
import { deliveryOf, withMessage } from './thread/queued-messages.js'
import { takeBranch } from './thread/take-branch.js'

/** What a request says besides what it asks for. */
export interface RequestOptions {
  /** A repeat with the same key answers the first one's task. */
  idempotencyKey?: string | undefined
  /** The span it is answered in: what becomes of the task is told below it. */
  traceparent?: string | undefined
}

/** Tasks as people and tools see them. Every call names a task by its id; `TaskNotFound` where there is none. */
export interface TaskService extends TaskResults, AttemptService, HeldService, TaskDecisions {
  /**
   * Accepts a task, or all of several attempts, of which `task` is the first. With the same `idempotencyKey` a repeat
   * answers the first one's task.
   */
  create(request: CreateTaskRequest, options?: RequestOptions): Promise<CreatedTask>
  get(id: string): Promise<TaskView>
  list(options?: {
    status?: TaskPhase
    group?: string
    project?: string
    limit?: number
    after?: string
  }): Promise<{ tasks: TaskView[]; next?: string }>
  cancel(id: string): Promise<TaskView>
  /** A new task that begins where the named one failed, with what that one kept. The named one does not change. */
  retry(
    id: string,
    request?: RetryTaskRequest,
    options?: RequestOptions,
  ): Promise<{ task: TaskView; isReplay: boolean }>
  /**
   * A message to an ended task: a new task that goes on from it, with the agent's session. The named one stays. To one that
   * has not ended: queued, and becomes that task when it has.
   */
  message(
    id: string,
    message: TaskMessageRequest,
    options?: RequestOptions,
  ): Promise<{ task: TaskView; isReplay: boolean } | MessageDelivery>
  /**
   * Takes an ended task away, with its record; with `force` one that runs is cancelled first and its work kept. The
   * answer comes when the deletion is recorded; the task is gone a moment later.
   */
  remove(id: string, options?: { force?: boolean }): Promise<TaskView>
  /** Events after a sequence; with `follow` until the task has ended. */
  events(
    id: string,
    options: { after: number; follow: boolean; signal: AbortSignal },
  ): Promise<AsyncIterable<TaskEvent>>
  /** The agent's raw output so far. */
  logs(id: string): Promise<AsyncIterable<Uint8Array>>
}

export function createTaskService(options: TaskServiceOptions): TaskService {
  const { client, namespace, records } = options
  const nextAcceptedAt = acceptedTimes(() => new Date())

  const getTask = async (id: string): Promise<Stored<AgentTask>> => {
    if (!/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(id)) throw notFound(id)
    try {
      return await client.get(AgentTasks, { namespace, name: id })
    } catch (error) {
      if (isNotFound(error)) throw notFound(id)
      throw error
    }
  }

  const queueOf = (task: Stored<AgentTask>, queue = phaseOf(task) === 'QUEUED' ? options.queue?.() : undefined) =>
    phaseOf(task) === 'QUEUED' ? queue?.get(task.metadata.uid) : undefined

  /** The agent a choice stands for, where it can do what the request asks for. */
  const checkedAgent = async (
    choice: AgentChoice | undefined,
    request: CompleteTaskRequest,
    seen: Seen = { ...options, place: undefined },
  ) => {
    const agent = agentSpecOf(choice ?? options.defaultAgent)
    checkCapabilities(agent, request)
    const sandbox = await sandboxWithRuntime(seen.client, namespace, request)
    await checkAgent(agent, sandbox, seen)
    return { agent, sandbox }
  }

  const create = async (
    wanted: CompleteTaskRequest,
    idempotencyKey: string | undefined,
    { name = nameFor(idempotencyKey), retry, continues, group, asked = wanted, traceparent }: Beginning = {},
  ): Promise<CreatedTask> => {
    // An agent that makes no sense is told before the repository is asked for anything.
    agentSpecOf(wanted.agent ?? options.defaultAgent)
    const { request: placed, seen } = await placedRequest(wanted, options)
    await checkRequest(placed, seen)
    const { agent, sandbox } = await checkedAgent(placed.agent, placed, seen)
    const request = { ...(await identityFor(placed, options)), ...placed, ...(sandbox ? { sandbox } : {}) }
    const fingerprint = idempotencyKey ? digest(JSON.stringify(fingerprinted(asked, retry, continues))) : undefined
    const acceptedAt = nextAcceptedAt()
    const task = taskFrom(request, {
      name,
      namespace,
      agent,
      fingerprint,
      retryOf: retry?.of,
      retry: retry?.spec,
      continues,
      group,
      acceptedAt,
      traceparent,
    })
    try {
      const stored = await client.create(AgentTasks, task)
      options.metrics?.created()
      return { task: taskView(stored), isReplay: false, ...(await siblingsOf(stored, retry)) }
    } catch (error) {
      if (!idempotencyKey || !isAlreadyExists(error)) throw error
      const first = await getTask(name)
      if (first.spec.idempotencyKey !== fingerprint)
        throw new TaskError('IdempotencyKeyReused', `this Idempotency-Key was used for another request (task ${name})`)
      return { task: taskView(first), isReplay: true, ...(await siblingsOf(first, retry)) }
    }
  }

  const siblingsOf = async (
    first: Stored<AgentTask>,
    retry: Beginning['retry'],
  ): Promise<Pick<CreatedTask, 'group'>> =>
    first.spec.group && !retry
      ? { group: { name: first.spec.group.name, tasks: await makeSiblings(client, first) } }
      : {}

  /** A repeat finds its task also when the project has changed or gone since. */
  const createAsked = async (
    asked: CreateTaskRequest,
    { idempotencyKey, traceparent }: RequestOptions,
  ): Promise<CreatedTask> => {
    if (asked.project !== undefined && idempotencyKey !== undefined) {
      const name = asked.attempts ? attemptName(groupNameFor(idempotencyKey), 1) : nameFor(idempotencyKey)
      const first = await client.find(AgentTasks, { namespace, name })
      if (first && first.spec.idempotencyKey === digest(JSON.stringify(asked)))
        return { task: taskView(first), isReplay: true, ...(await siblingsOf(first, undefined)) }
    }
    const request = withDefaults(await completeRequest(client, namespace, asked), await options.defaults?.())
    return asked.attempts
      ? attempts.create(request, asked, { idempotencyKey, traceparent })
      : create(request, idempotencyKey, { asked, traceparent })
  }

  const sendToEnded = async (
    former: Stored<AgentTask>,
    message: TaskMessageRequest,
    { name, idempotencyKey, traceparent }: { name: string } & RequestOptions,
  ): Promise<{ task: TaskView; isReplay: boolean }> => {
    const isBranchFree = !message.new_branch && (await takeBranch(client, former, name))
    const { request, continues } = followUpOf(former, message, { isBranchFree })
    return create(request, idempotencyKey, { name, continues, traceparent })
  }

  /** A task that ends meanwhile changes, so that the write is refused and its end is seen. */
  const queueMessage = async (
    task: Stored<AgentTask>,
    message: TaskMessageRequest,
    id: string,
  ): Promise<{ task: TaskView; isReplay: boolean } | MessageDelivery> => {
    const messages = withMessage(task, message, { id, now: new Date() })
    try {
      const next = { ...task, spec: { ...task.spec, messages } }
      if (messages !== task.spec.messages) await client.update(AgentTasks, next)
      return { delivery: deliveryOf(next, id), message_id: id }
    } catch (error) {
      if (!isConflict(error)) throw error
      const current = await getTask(task.metadata.name)
      return isFinished(current) ? sendToEnded(current, message, { name: id }) : queueMessage(current, message, id)
    }
  }

  const attempts = createAttemptService({
    ...{ client, namespace, getTask, create },
    checkedAgent: async (choice, request) => {
      const { request: placed, seen } = await placedRequest(request, options)
      return (await checkedAgent(choice, placed, seen)).agent
    },
    checkRequest: async (request) => {
      const { request: placed, seen } = await placedRequest(request, options)
      await checkRequest(placed, seen)
    },
    nameOf: groupNameFor,
  })

  return {
    create: (request, asked = {}) => createAsked(request, asked),
    async get(id) {
      const task = await getTask(id)
      return taskView(task, queueOf(task))
    },
    async list({ status, group, project, limit = 100, after } = {}) {
      const ofProject = project === undefined ? {} : { labelSelector: `${projectLabel}=${project}` }
      const { items } = await client.list(AgentTasks, { namespace, ...ofProject })
      const queue = options.queue?.()
      const includes = (task: AgentTask): boolean =>
        (!status || phaseOf(task) === status) && (!group || task.spec.group?.name === group)
      const { page, next } = taskPage(items, { limit, after, includes })
      return { tasks: page.map((task) => taskView(task, queueOf(task, queue))), ...(next ? { next } : {}) }
    },
    async cancel(id) {
      const task = await getTask(id)
      if (isFinished(task)) throw new TaskError('TaskFinished', `task ${id} has already ended (${phaseOf(task)})`)
      return taskView(
        await client.patch(
          AgentTasks,
          { namespace, name: id },
          { type: 'merge', body: { spec: { cancelRequested: true } } },
        ),
      )
    },
    async retry(id, wanted = {}, { idempotencyKey, traceparent } = {}) {
      const task = await getTask(id)
      const retry = retryOf(task, wanted)
      const { group, continues } = task.spec
      // A pick that failed is picked again, not repeated: only then it is known what it may replace.
      if (group?.pick)
        throw new TaskError('RetryNotPossible', `task ${id} only pushes the attempt ${task.spec.retryOf ?? ''}`, {
          hint: `Pick it again: \`corral task pick ${task.spec.retryOf ?? 'ID'}\`.`,
        })
      return create(retry.request, idempotencyKey, { retry, continues, group, traceparent })
    },
    async message(id, message, { idempotencyKey, traceparent } = {}) {
      const name = nameFor(idempotencyKey)
      const former = await getTask(id)
      const isQueued = former.spec.messages?.some((queued) => queued.id === name) === true
      if (!isFinished(former) || isQueued) return queueMessage(former, message, name)
      return sendToEnded(former, message, { name, idempotencyKey, traceparent })
    },
    async remove(id, { force } = {}) {
      const task = await getTask(id)
      if (!isFinished(task) && !force)
        throw new TaskError('TaskNotFinished', `task ${id} has not ended yet (${phaseOf(task)})`, {
          hint: `Wait for it, end it with \`corral task cancel ${id}\`, or do both with \`corral task rm --force ${id}\`.`,
        })
      await client.delete(AgentTasks, { namespace, name: id }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error
      })
      return taskView(task)
    },
    async events(id, { after, follow, signal }) {
      const task = await getTask(id)
      // The log of a task that has ended is as long as it gets, with its last event or, for want of room, without.
      const { uid } = task.metadata
      if (!follow || isFinished(task)) return records.events.read(uid, { after, follow: false, signal })
      const isRecorded = async (): Promise<boolean> => {
        const now = await client.find(AgentTasks, { namespace, name: id })
        return !now || now.metadata.uid !== uid || isFinished(now)
      }
      return endAfterRecord(records.events.read(uid, { after, follow, signal }), { isRecorded, signal })
    },
    async logs(id) {
      const task = await getTask(id)
      return agentLogs(records.of(task.metadata.uid), agentRunOf(task).number)
    },
    group: attempts.group,
    pick: attempts.pick,
    release: async (id) => taskView(await releaseSandbox(client, () => getTask(id))),
    ...createTaskDecisions({ client, getTask }),
    ...createTaskResults({ getTask, records, trees: options.trees, bringHome: options.bringHome }),
  }
}

/** What a task begins with beside its request. */
interface Beginning {
  name?: string
  retry?: Pick<Retry, 'of' | 'spec'>
  continues?: AgentTask['spec']['continues'] | undefined
  group?: AgentTask['spec']['group'] | undefined
  /** The request as it came, where a project added to it. */
  asked?: CreateTaskRequest
  traceparent?: string | undefined
}

/** Without a beginning the request alone, as it was before there were any. */
function fingerprinted(
  request: CreateTaskRequest,
  retry: Beginning['retry'],
  continues: Beginning['continues'],
): unknown {
  if (continues) return [request, retry ?? null, continues]
  return retry ? [request, retry] : request
}

async function* agentLogs(record: TaskRecord, runs: number): AsyncIterable<Uint8Array> {
  for (let run = 1; run <= runs; run++) yield* record.read(logPartOf(run))
}

function notFound(id: string): TaskError {
  return new TaskError('TaskNotFound', `there is no task "${id.slice(0, 100)}"`, {
    hint: 'List the tasks with `corral task list`.',
  })
}
