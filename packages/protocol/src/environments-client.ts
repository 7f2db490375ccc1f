import {
  type BuildEnvironmentRequest,
  type EnvironmentEvents,
  type EnvironmentView,
  environmentEventsSchema,
  environmentListSchema,
  environmentViewSchema,
  type RebuildEnvironmentRequest,
} from './environment-api.js'
import type { ClientCalls } from './projects-client.js'
import type { TaskCallOptions } from './task-http.js'

/** Environments: what tasks on a branch of a repository find set up. `EnvironmentNotFound` where there is none of the name. */
export class EnvironmentsClient {
  readonly #calls: ClientCalls
  constructor(calls: ClientCalls) {
    this.#calls = calls
  }

  /** By name. */
  list(options: TaskCallOptions = {}): Promise<{ environments: EnvironmentView[] }> {
    return this.#calls.json('GET', '/environments', environmentListSchema, options)
  }

  /** Asks for a build of a branch and waits for no end; one that runs is joined. */
  build(request: BuildEnvironmentRequest, options: TaskCallOptions = {}): Promise<EnvironmentView> {
    return this.#calls.json('POST', '/environments', environmentViewSchema, options, { body: JSON.stringify(request) })
  }

  rebuild(
    name: string,
    request: RebuildEnvironmentRequest = {},
    options: TaskCallOptions = {},
  ): Promise<EnvironmentView> {
    const body = JSON.stringify(request)
    return this.#calls.json('POST', `${pathOf(name)}/build`, environmentViewSchema, options, { body })
  }

  get(name: string, options: TaskCallOptions = {}): Promise<EnvironmentView> {
    return this.#calls.json('GET', pathOf(name), environmentViewSchema, options)
  }

  /** What the last build said after this sequence. */
  events(name: string, after: number, options: TaskCallOptions = {}): Promise<EnvironmentEvents> {
    return this.#calls.json('GET', `${pathOf(name)}/events?after=${after}`, environmentEventsSchema, options)
  }

  /** Its snapshots go with it, each once no sandbox has it any more; the next task builds it anew. */
  remove(name: string, options: TaskCallOptions = {}): Promise<void> {
    return this.#calls.nothing('DELETE', pathOf(name), options)
  }
}

const pathOf = (name: string): string => `/environments/${encodeURIComponent(name)}`
