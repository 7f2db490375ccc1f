import type { KubeClient } from '@corral/kube'
import type {
  AgentChoice,
  CompleteTaskRequest,
  CreateTaskRequest,
  GroupView,
  PickTaskRequest,
  TaskView,
} from '@corral/protocol'
import { type AgentTask, AgentTasks, isAlreadyExists, type Stored } from '@corral/resources'
import type { Retry } from '../task-retry.js'
import { attemptBranch, type Group } from '../task-state/group.js'
import { taskView } from '../task-view.js'
import { firstAttempt, groupView, picksOf } from './attempts.js'
import { pickOf } from './pick.js'

/** What a request became; for attempts the first one, and the ids of all. */
export interface CreatedTask {
  task: TaskView
  isReplay: boolean
  group?: { name: string; tasks: string[] }
}

/** Several attempts at one thing. */
export interface AttemptService {
  /** Attempts side by side. `GroupNotFound` where there are none. */
  group(name: string): Promise<GroupView>
  /**
   * Gives the branch that was asked for to one of several attempts, by a task that pushes its kept commit. Picking the
   * same twice answers the same task; another one is `AlreadyPicked` unless `force`.
   */
  pick(id: string, request?: PickTaskRequest): Promise<{ task: TaskView; isReplay: boolean }>
}

export interface AttemptOptions {
  client: Pick<KubeClient, 'list'>
  namespace: string
  getTask(id: string): Promise<Stored<AgentTask>>
  /** The agent a choice stands for, where it can do what the request asks for. */
  checkedAgent(choice: AgentChoice | undefined, request: CompleteTaskRequest): Promise<AgentTask['spec']['agent']>
  checkRequest(request: CompleteTaskRequest): Promise<void>
  /** Makes one task; the first of a group makes its siblings as well. */
  create(
    request: CompleteTaskRequest,
    idempotencyKey: string | undefined,
    beginning: {
      name: string
      group: Group
      asked?: CreateTaskRequest
      traceparent?: string | undefined
      retry?: Retry
      continues?: AgentTask['spec']['continues'] | undefined
    },
  ): Promise<CreatedTask>
  nameOf(idempotencyKey: string | undefined): string
}

export function createAttemptService(options: AttemptOptions): AttemptService & {
  /** Everything is checked before the first one is made: of several attempts there are all or none. */
  create(
    request: CompleteTaskRequest,
    asked: CreateTaskRequest,
    origin: { idempotencyKey: string | undefined; traceparent: string | undefined },
  ): Promise<CreatedTask>
} {
  const { client, namespace, getTask, checkedAgent, checkRequest, create } = options
  const list = async (): Promise<Stored<AgentTask>[]> => (await client.list(AgentTasks, { namespace })).items
  return {
    async create(request, asked, { idempotencyKey, traceparent }) {
      const agents: Group['agents'] = []
      for (const attempt of request.attempts ?? [])
        agents.push(await checkedAgent(attempt.agent ?? request.agent, request))
      const first = firstAttempt(request, { name: options.nameOf(idempotencyKey), agents })
      const branches = agents.map((_, index) => attemptBranch(first.group, index + 1))
      for (const branch of [first.group.branch, ...branches]) await checkRequest({ ...request, new_branch: branch })
      return create(first.request, idempotencyKey, { name: first.name, group: first.group, asked, traceparent })
    },
    group: async (name) => groupView(await list(), name),
    async pick(id, { force } = {}) {
      for (;;) {
        const task = await getTask(id)
        const pick = pickOf(task, picksOf(await list(), task.spec.group?.name ?? ''), { force })
        if (pick.kind === 'there') return { task: taskView(pick.task), isReplay: true }
        const { name, retry, group } = pick
        try {
          return await create(retry.request, undefined, { name, retry, group, continues: task.spec.continues })
        } catch (error) {
          // Another request picked at the same moment: what that one picked decides.
          if (!isAlreadyExists(error)) throw error
        }
      }
    },
  }
}
