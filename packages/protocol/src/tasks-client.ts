import { isFinalPhase, type TaskPhase } from '@corral/resources/task-words'
import * as z from 'zod'
import type { PickTaskRequest } from './attempt-api.js'
import {
  type AnswerQuestionRequest,
  type ApprovePlanRequest,
  type MessageDelivery,
  messageDeliverySchema,
  type RejectPlanRequest,
  type RevisePlanRequest,
  type TaskMessageRequest,
} from './conversation-api.js'
import { CorralError } from './corral-error.js'
import type { Fetch } from './daemon-client.js'
import { EnvironmentsClient } from './environments-client.js'
import { type GroupView, groupViewSchema } from './group-view.js'
import {
  type AgentInfo,
  agentListSchema,
  type ConnectionCheck,
  type ObjectView,
  objectViewSchema,
  type PoolInfo,
  poolInfoSchema,
  poolListSchema,
  type SandboxInfo,
  type SecretInfo,
  type ShownKind,
  sandboxListSchema,
  secretListSchema,
} from './platform-api.js'
import { type ClientCalls, ProjectsClient } from './projects-client.js'
import {
  type AppliedChange,
  type ApplyRequest,
  type ArtifactList,
  appliedChangeSchema,
  artifactListSchema,
  type ChangedFiles,
  changedFilesSchema,
  type FileRef,
} from './result-api.js'
import { type SandboxProviderInfo, sandboxProviderListSchema } from './sandbox-provider-api.js'
import type { PatchSettingsRequest } from './settings-api.js'
import { SettingsClient } from './settings-client.js'
import {
  type CreateTaskRequest,
  type CreateTaskResponse,
  createTaskResponseSchema,
  type RetryTaskRequest,
} from './task-api.js'
import { finalViewOf, type TaskEvent } from './task-events.js'
import { type TaskCallOptions, TaskHttp } from './task-http.js'
import { type TaskList, type TaskView, taskListSchema, taskViewSchema } from './task-view.js'
import { pathOf, searchOf } from './task-wire.js'
import { type OpenSessionRequest, type SessionView, sessionViewSchema } from './web-api.js'

export interface TasksClientOptions {
  /** Where the task API answers, such as `http://127.0.0.1:7080`. */
  baseUrl: string
  /** Without it requests carry no credentials of their own, as in a browser with a session. */
  token?: string
  fetch?: Fetch
  /** How long a broken event stream is opened again before its reader sees the failure; a minute without it. */
  reconnectForMs?: number
}

/** A part of an answer, in bytes. */
export interface BytesWanted {
  offset?: number
  limit?: number
}

const reconnectPauseMs = 250

/**
 * The task API over any `fetch`, for Node and browsers. A failure is a `CorralError` with the server's code, words and
 * hint; a platform that does not answer is `ConnectionLost`.
 */
export class TasksClient {
  readonly #http: TaskHttp
  readonly #json: TaskHttp['json']
  readonly #nothing: TaskHttp['nothing']
  readonly #reconnectForMs: number
  readonly projects: ProjectsClient
  readonly environments: EnvironmentsClient
  readonly settings: SettingsClient

  constructor(options: TasksClientOptions) {
    this.#http = new TaskHttp(options)
    this.#json = (...call) => this.#http.json(...call)
    this.#nothing = (...call) => this.#http.nothing(...call)
    this.#reconnectForMs = options.reconnectForMs ?? 60_000
    const calls: ClientCalls = { json: this.#json, nothing: this.#nothing }
    this.projects = new ProjectsClient(calls)
    this.environments = new EnvironmentsClient(calls)
    this.settings = new SettingsClient(calls)
  }

  /** With the same `idempotencyKey` a repeat answers the first one's task. */
  create(
    request: CreateTaskRequest,
    options: TaskCallOptions & { idempotencyKey?: string } = {},
  ): Promise<CreateTaskResponse> {
    const headers = options.idempotencyKey ? { 'idempotency-key': options.idempotencyKey } : {}
    return this.#json('POST', '/tasks', createTaskResponseSchema, options, { body: JSON.stringify(request), headers })
  }

  get(id: string, options: TaskCallOptions = {}): Promise<TaskView> {
    return this.#json('GET', pathOf(id), taskViewSchema, options)
  }

  /** Newest first. `next` of a page is `after` of the following one. */
  list(
    query: { status?: TaskPhase; group?: string; project?: string; limit?: number; after?: string } = {},
    options: TaskCallOptions = {},
  ): Promise<TaskList> {
    return this.#json('GET', `/tasks${searchOf(query)}`, taskListSchema, options)
  }

  cancel(id: string, options: TaskCallOptions = {}): Promise<TaskView> {
    return this.#json('POST', `${pathOf(id)}/cancel`, taskViewSchema, options)
  }

  /** A new task that begins where the former failed, with what it kept. */
  retry(
    id: string,
    request: RetryTaskRequest = {},
    options: TaskCallOptions & { idempotencyKey?: string } = {},
  ): Promise<CreateTaskResponse> {
    const headers = options.idempotencyKey ? { 'idempotency-key': options.idempotencyKey } : {}
    const body = JSON.stringify(request)
    return this.#json('POST', `${pathOf(id)}/retry`, createTaskResponseSchema, options, { body, headers })
  }

  /** A message: answers the new task that goes on from an ended one, or how it is delivered to one that has not ended. */
  send(
    id: string,
    message: TaskMessageRequest,
    options: TaskCallOptions & { idempotencyKey?: string } = {},
  ): Promise<CreateTaskResponse | MessageDelivery> {
    const headers = options.idempotencyKey ? { 'idempotency-key': options.idempotencyKey } : {}
    const body = JSON.stringify(message)
    const answer = z.union([createTaskResponseSchema, messageDeliverySchema])
    return this.#json('POST', `${pathOf(id)}/messages`, answer, options, { body, headers })
  }

  /** Several attempts side by side. */
  group(name: string, options: TaskCallOptions = {}): Promise<GroupView> {
    return this.#json('GET', `/groups/${encodeURIComponent(name)}`, groupViewSchema, options)
  }

  /** Brings the change into the work tree of its repository on the platform's machine; refused where it cannot be whole. */
  apply(id: string, request: ApplyRequest, options: TaskCallOptions = {}): Promise<AppliedChange> {
    const call = { timeoutMs: 5 * 60_000, ...options }
    return this.#json('POST', `${pathOf(id)}/apply`, appliedChangeSchema, call, { body: JSON.stringify(request) })
  }

  /** Gives an attempt the branch that was asked for: answers the task that pushes it. */
  pick(id: string, request: PickTaskRequest = {}, options: TaskCallOptions = {}): Promise<CreateTaskResponse> {
    const body = JSON.stringify(request)
    return this.#json('POST', `${pathOf(id)}/pick`, createTaskResponseSchema, options, { body })
  }

  /** Lets the sandbox go that an ended task holds. */
  release(id: string, options: TaskCallOptions = {}): Promise<TaskView> {
    return this.#json('POST', `${pathOf(id)}/release`, taskViewSchema, options)
  }

  /** Lets the agent carry out its plan, or what was made of it. */
  approve(id: string, request: ApprovePlanRequest, options: TaskCallOptions = {}): Promise<TaskView> {
    return this.#json('POST', `${pathOf(id)}/approve`, taskViewSchema, options, { body: JSON.stringify(request) })
  }

  /** Lets the agent plan again. */
  revise(id: string, request: RevisePlanRequest, options: TaskCallOptions = {}): Promise<TaskView> {
    return this.#json('POST', `${pathOf(id)}/revise`, taskViewSchema, options, { body: JSON.stringify(request) })
  }

  /** Ends the task before anything was done. */
  reject(id: string, request: RejectPlanRequest, options: TaskCallOptions = {}): Promise<TaskView> {
    return this.#json('POST', `${pathOf(id)}/reject`, taskViewSchema, options, { body: JSON.stringify(request) })
  }

  /** Answers a question the agent waits with. */
  answer(id: string, request: AnswerQuestionRequest, options: TaskCallOptions = {}): Promise<TaskView> {
    return this.#json('POST', `${pathOf(id)}/answers`, taskViewSchema, options, { body: JSON.stringify(request) })
  }

  /** Takes an ended task and its record away; with `force` one that runs is cancelled first. */
  remove(id: string, options: TaskCallOptions & { force?: boolean } = {}): Promise<TaskView> {
    return this.#json('DELETE', `${pathOf(id)}${options.force ? '?force=true' : ''}`, taskViewSchema, options)
  }

  /** What the agent wrote so far. */
  logs(id: string, options: { signal?: AbortSignal } = {}): AsyncIterable<Uint8Array> {
    return this.#http.bytes(`${pathOf(id)}/logs`, options.signal)
  }

  /** The accepted change as a patch, whole or of the file at `path`. */
  diff(id: string, options: { signal?: AbortSignal; path?: string } & BytesWanted = {}): AsyncIterable<Uint8Array> {
    const { signal, ...query } = options
    return this.#http.bytes(`${pathOf(id)}/diff${searchOf(query)}`, signal)
  }

  /** The files a task changed. */
  files(id: string, options: TaskCallOptions = {}): Promise<ChangedFiles> {
    return this.#json('GET', `${pathOf(id)}/files`, changedFilesSchema, options)
  }

  /** One file as it is in the result (`head`, the default) or as it was in the base. */
  file(
    id: string,
    path: string,
    options: { signal?: AbortSignal; ref?: FileRef } & BytesWanted = {},
  ): AsyncIterable<Uint8Array> {
    const { signal, ...query } = options
    return this.#http.bytes(`${pathOf(id)}/files/${encodeURIComponent(path)}${searchOf(query)}`, signal)
  }

  /** Files kept with the task. */
  artifacts(id: string, options: TaskCallOptions = {}): Promise<ArtifactList> {
    return this.#json('GET', `${pathOf(id)}/artifacts`, artifactListSchema, options)
  }

  artifact(id: string, name: string, options: { signal?: AbortSignal } = {}): AsyncIterable<Uint8Array> {
    return this.#http.bytes(`${pathOf(id)}/artifacts/${encodeURIComponent(name)}`, options.signal)
  }

  /**
   * Events after `after`, live, until the last one, or all there are of a task that ended without it. A broken
   * connection is opened again where it broke; `onLost` hears of every time that takes more than one try.
   */
  async *events(
    id: string,
    options: { after?: number; signal?: AbortSignal; onLost?: () => void } = {},
  ): AsyncGenerator<TaskEvent, void> {
    let after = options.after ?? 0
    let failingSince: number | undefined
    for (let attempt = 1; ; attempt++) {
      try {
        // A stream that ended without the last event: the task has none, or the server went away.
        const isOver = attempt > 1 && isFinalPhase((await this.get(id, options)).status)
        for await (const event of this.#http.events(id, after, options.signal)) {
          failingSince = undefined
          after = event.sequence
          yield event
          if (event.type === 'result') return
        }
        if (isOver) return
        failingSince = undefined
      } catch (error) {
        if (!(error instanceof CorralError) || !error.retryable || options.signal?.aborted) throw error
        if (failingSince === undefined) options.onLost?.()
        failingSince ??= Date.now()
        if (Date.now() - failingSince >= this.#reconnectForMs) throw error
      }
      await new Promise((resolve) => setTimeout(resolve, reconnectPauseMs))
    }
  }

  /** The events so far, of a task that has ended or goes on. */
  eventsSoFar(id: string, options: { signal?: AbortSignal } = {}): AsyncGenerator<TaskEvent, void> {
    return this.#http.events(id, 0, options.signal, '&follow=false')
  }

  /** The task at its end. The last event carries it; only a task that ended without one is asked for. */
  async wait(id: string, options: { signal?: AbortSignal } = {}): Promise<TaskView> {
    for await (const event of this.events(id, options)) {
      const task = finalViewOf(event)
      if (task) return task
    }
    return this.get(id, options)
  }

  /** Who a browser is signed in as; `Unauthorized` where it is not. */
  session(options: TaskCallOptions = {}): Promise<SessionView> {
    return this.#json('GET', '/session', sessionViewSchema, options)
  }

  /** Signs a browser in: the answer sets its cookie. */
  async openSession(proof: OpenSessionRequest, options: TaskCallOptions = {}): Promise<void> {
    await this.#nothing('POST', '/session', options, { body: JSON.stringify(proof) })
  }

  async closeSession(options: TaskCallOptions = {}): Promise<void> {
    await this.#nothing('DELETE', '/session', options)
  }

  /** A task on a repository of its own that needs neither key nor agent. */
  createDemo(options: TaskCallOptions = {}): Promise<CreateTaskResponse> {
    return this.#json('POST', '/demo', createTaskResponseSchema, options)
  }

  agents(options: TaskCallOptions = {}): Promise<{ agents: AgentInfo[] }> {
    return this.#json('GET', '/agents', agentListSchema, options)
  }

  /** Names, and whether they are set: a value is never told. */
  secrets(options: TaskCallOptions = {}): Promise<{ secrets: SecretInfo[] }> {
    return this.#json('GET', '/secrets', secretListSchema, options)
  }

  async setSecret(name: string, value: string, options: TaskCallOptions = {}): Promise<void> {
    await this.#nothing('PUT', `/secrets/${encodeURIComponent(name)}`, options, { body: JSON.stringify({ value }) })
  }

  async removeSecret(name: string, options: TaskCallOptions = {}): Promise<void> {
    await this.#nothing('DELETE', `/secrets/${encodeURIComponent(name)}`, options)
  }

  sandboxes(options: TaskCallOptions = {}): Promise<{ sandboxes: SandboxInfo[] }> {
    return this.#json('GET', '/sandboxes', sandboxListSchema, options)
  }

  pools(options: TaskCallOptions = {}): Promise<{ pools: PoolInfo[] }> {
    return this.#json('GET', '/pools', poolListSchema, options)
  }

  resizePool(name: string, replicas: number, options: TaskCallOptions = {}): Promise<PoolInfo> {
    const body = JSON.stringify({ replicas })
    return this.#json('PATCH', `/pools/${encodeURIComponent(name)}`, poolInfoSchema, options, { body })
  }

  /** The Kubernetes object behind something that is shown. */
  object(kind: ShownKind, name: string, options: TaskCallOptions = {}): Promise<ObjectView> {
    return this.#json('GET', `/objects/${kind}/${encodeURIComponent(name)}`, objectViewSchema, options)
  }

  /** Where sandboxes of tasks may come from. */
  providers(options: TaskCallOptions = {}): Promise<{ providers: SandboxProviderInfo[] }> {
    return this.#json('GET', '/providers', sandboxProviderListSchema, options)
  }

  /** Looks at what the platform needs of the cluster of a provider, one result after the other. */
  testProvider(name: string, options: { signal?: AbortSignal } = {}): AsyncGenerator<ConnectionCheck, void> {
    return this.#http.checks(`/providers/${encodeURIComponent(name)}/test`, options)
  }

  /**
   * Looks at what the platform needs of its cluster, one result after the other: with the settings that are saved, changed by
   * `settings`, which are not.
   */
  testConnection(
    options: { signal?: AbortSignal; settings?: PatchSettingsRequest } = {},
  ): AsyncGenerator<ConnectionCheck, void> {
    return this.#http.checks('/settings/test', options)
  }
}
