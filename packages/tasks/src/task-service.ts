import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { agentAdapters, findAgent } from '@corral/agents'
import type { KubeClient } from '@corral/kube'
import type { CreateTaskRequest, TaskEvent, TaskPhase, TaskView } from '@corral/protocol'
import { type AgentTask, AgentTasks, isAlreadyExists, isNotFound, type Stored } from '@corral/resources'
import { taskFinalizer } from './agent-task/plan.js'
import { isFinished, phaseOf } from './agent-task/stages.js'
import type { EventLog } from './event-log/event-log.js'
import { checkLocalRepository, localPathOf } from './repository/local-repository.js'
import { parseRepositoryUrl } from './repository/repository-url.js'
import { TaskError } from './task-error.js'
import type { TaskMetrics } from './task-metrics.js'
import { taskView } from './task-view.js'

/** Tasks as people and tools see them. Every call names a task by its id; `TaskNotFound` where there is none. */
export interface TaskService {
  /** Accepts a task. With the same `idempotencyKey` a repeat answers the first one's task. */
  create(
    request: CreateTaskRequest,
    options?: { idempotencyKey?: string; retryOf?: string },
  ): Promise<{ task: TaskView; isReplay: boolean }>
  get(id: string): Promise<TaskView>
  list(options?: { status?: TaskPhase; limit?: number; after?: string }): Promise<{ tasks: TaskView[]; next?: string }>
  cancel(id: string): Promise<TaskView>
  retry(id: string): Promise<TaskView>
  /** Events after a sequence; with `follow` until the task has ended. */
  events(
    id: string,
    options: { after: number; follow: boolean; signal: AbortSignal },
  ): Promise<AsyncIterable<TaskEvent>>
  /** The agent's raw output so far. */
  logs(id: string): Promise<AsyncIterable<Uint8Array>>
  /** The accepted change as a patch; empty where there is none. */
  diff(id: string): Promise<AsyncIterable<Uint8Array>>
}

export interface TaskServiceOptions {
  client: KubeClient
  namespace: string
  eventLog: EventLog
  directory: string
  defaultAgent: string
  /**
   * Whether requests may name repositories on this machine's disk, by path or file://. Such a repository is looked at
   * before the task is taken.
   */
  localRepositories: boolean
  metrics?: TaskMetrics
}

const nameAlphabet = 'bcdfghjklmnpqrstvwxz2456789'

export function createTaskService(options: TaskServiceOptions): TaskService {
  const { client, namespace, eventLog } = options

  const getTask = async (id: string): Promise<Stored<AgentTask>> => {
    if (!/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(id)) throw notFound(id)
    try {
      return await client.get(AgentTasks, { namespace, name: id })
    } catch (error) {
      if (isNotFound(error)) throw notFound(id)
      throw error
    }
  }

  const create: TaskService['create'] = async (request, { idempotencyKey, retryOf } = {}) => {
    await checkRequest(request, options.localRepositories)
    const fingerprint = idempotencyKey ? digest(JSON.stringify(request)) : undefined
    const name = idempotencyKey
      ? nameFrom(createHash('sha256').update(idempotencyKey).digest())
      : nameFrom(randomBytes(16))
    const task = taskFrom(request, { name, namespace, agent: options.defaultAgent, fingerprint, retryOf })
    try {
      const stored = await client.create(AgentTasks, task)
      options.metrics?.created()
      return { task: taskView(stored), isReplay: false }
    } catch (error) {
      if (!idempotencyKey || !isAlreadyExists(error)) throw error
      const first = await getTask(name)
      if (first.spec.idempotencyKey !== fingerprint)
        throw new TaskError('IdempotencyKeyReused', `this Idempotency-Key was used for another request (task ${name})`)
      return { task: taskView(first), isReplay: true }
    }
  }

  return {
    create,
    async get(id) {
      return taskView(await getTask(id))
    },
    async list({ status, limit = 100, after } = {}) {
      const { items } = await client.list(AgentTasks, { namespace })
      const newestFirst = items
        .filter((task) => !status || phaseOf(task) === status)
        .sort((left, right) => Number(right.metadata.resourceVersion) - Number(left.metadata.resourceVersion))
        .sort(
          (left, right) => Date.parse(right.metadata.creationTimestamp) - Date.parse(left.metadata.creationTimestamp),
        )
      const start = after ? newestFirst.findIndex((task) => task.metadata.name === after) + 1 : 0
      const page = newestFirst.slice(start, start + limit)
      const last = page.at(-1)
      return {
        tasks: page.map(taskView),
        ...(last && start + limit < newestFirst.length ? { next: last.metadata.name } : {}),
      }
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
    async retry(id) {
      const task = await getTask(id)
      if (!isFinished(task)) throw new TaskError('TaskNotFinished', `task ${id} has not ended yet (${phaseOf(task)})`)
      const { task: created } = await create(requestFrom(task), { retryOf: id })
      return created
    },
    async events(id, { after, follow, signal }) {
      const task = await getTask(id)
      // The log of a task that has ended is as long as it gets, with its last event or, for want of room, without.
      return eventLog.read(task.metadata.uid, { after, follow: follow && !isFinished(task), signal })
    },
    async logs(id) {
      return fileChunks(join(options.directory, (await getTask(id)).metadata.uid, 'agent.log'))
    },
    async diff(id) {
      return fileChunks(join(options.directory, (await getTask(id)).metadata.uid, 'diff.patch'))
    },
  }
}

async function checkRequest(request: CreateTaskRequest, allowLocal: boolean): Promise<void> {
  const location = parseRepositoryUrl(request.repo)
  if (request.agent && !findAgent(request.agent.name))
    throw new TaskError('UnknownAgent', `there is no agent "${request.agent.name}"`, {
      hint: `Use one of: ${[...agentAdapters.keys()].join(', ')}.`,
    })
  if (request.sandbox?.pool && request.sandbox.template)
    throw new TaskError('Invalid', 'sandbox: name a pool or a template, not both')
  const path = localPathOf(location)
  if (path === undefined) return
  if (!allowLocal)
    throw new TaskError('LocalRepositoryRefused', `${path} is on a disk of the server, which takes remote ones only`, {
      hint: 'Give an https:// or ssh:// address, or start the server with --local-repositories.',
    })
  await checkLocalRepository(path, request.base_branch)
}

interface TaskIdentity {
  name: string
  namespace: string
  agent: string
  fingerprint: string | undefined
  retryOf: string | undefined
}

function taskFrom(request: CreateTaskRequest, identity: TaskIdentity): AgentTask {
  const { agent } = request
  if (!agent && identity.agent === 'command') throw new TaskError('Invalid', 'agent: the command agent needs a command')
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: {
      name: identity.name,
      namespace: identity.namespace,
      finalizers: [taskFinalizer],
      ...(request.labels ? { labels: request.labels } : {}),
    },
    spec: {
      repository: { url: request.repo },
      prompt: request.task,
      agent: agent
        ? {
            name: agent.name,
            ...('command' in agent ? { command: agent.command } : {}),
            ...('model' in agent && agent.model ? { model: agent.model } : {}),
          }
        : { name: identity.agent },
      ...(request.base_branch ? { baseBranch: request.base_branch } : {}),
      ...(request.new_branch ? { newBranch: request.new_branch } : {}),
      ...(request.timeout_seconds ? { timeoutSeconds: request.timeout_seconds } : {}),
      ...(request.files
        ? {
            files: request.files.map(({ mode, ...file }) => ({
              ...definedOnly(file),
              ...(mode ? { mode: Number.parseInt(mode, 8) } : {}),
            })),
          }
        : {}),
      ...(request.setup ? { setup: request.setup } : {}),
      ...(request.egress ? { egress: request.egress } : {}),
      ...(request.sandbox ? { sandbox: definedOnly(request.sandbox) } : {}),
      ...(request.keep_sandbox ? { keepSandbox: true } : {}),
      ...(identity.retryOf ? { retryOf: identity.retryOf } : {}),
      ...(identity.fingerprint ? { idempotencyKey: identity.fingerprint } : {}),
    },
  }
}

/** The request that made a task: a retry asks for the same, on a branch of its own unless one was named. */
function requestFrom({ spec, metadata }: Stored<AgentTask>): CreateTaskRequest {
  const { name, command, model } = spec.agent
  const agent =
    name === 'command'
      ? { name: 'command' as const, command: command ?? '' }
      : { name: name as 'claude', ...(model ? { model } : {}) }
  return {
    repo: spec.repository.url,
    task: spec.prompt,
    agent,
    ...(spec.baseBranch ? { base_branch: spec.baseBranch } : {}),
    ...(spec.newBranch ? { new_branch: spec.newBranch } : {}),
    ...(spec.timeoutSeconds ? { timeout_seconds: spec.timeoutSeconds } : {}),
    ...(spec.files
      ? {
          files: spec.files.map(({ mode, ...file }) => ({
            ...file,
            ...(mode === undefined ? {} : { mode: mode.toString(8).padStart(4, '0') }),
          })),
        }
      : {}),
    ...(spec.setup ? { setup: spec.setup } : {}),
    ...(spec.egress ? { egress: spec.egress } : {}),
    ...(spec.sandbox ? { sandbox: spec.sandbox } : {}),
    ...(spec.keepSandbox ? { keep_sandbox: true } : {}),
    ...(metadata.labels ? { labels: metadata.labels } : {}),
  }
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> }

function definedOnly<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as Defined<T>
}

/** `task-` and ten characters that spell no word and read well aloud. */
function nameFrom(bytes: Uint8Array): string {
  return `task-${Array.from(bytes.subarray(0, 10), (byte) => nameAlphabet[byte % nameAlphabet.length]).join('')}`
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function notFound(id: string): TaskError {
  return new TaskError('TaskNotFound', `there is no task "${id.slice(0, 100)}"`, {
    hint: 'List the tasks with `corral task list`.',
  })
}

async function fileChunks(path: string): Promise<AsyncIterable<Uint8Array>> {
  const exists = await stat(path).then(
    (info) => info.isFile(),
    () => false,
  )
  return exists ? createReadStream(path) : nothing()
}

async function* nothing(): AsyncIterable<Uint8Array> {}
