import type * as z from 'zod'
import {
  type CreateProjectRequest,
  type PatchProjectRequest,
  type ProjectView,
  projectListSchema,
  projectViewSchema,
  type ReplaceProjectRequest,
} from './project-api.js'
import type { TaskCallOptions } from './task-http.js'

/** How a part of the client asks its server. */
export interface ClientCalls {
  json<T>(method: string, path: string, schema: z.ZodType<T>, options: TaskCallOptions, init?: RequestInit): Promise<T>
  nothing(method: string, path: string, options: TaskCallOptions, init?: RequestInit): Promise<void>
}

/** Projects: settings that tasks get by naming them. `ProjectNotFound` where there is none of the name. */
export class ProjectsClient {
  readonly #calls: ClientCalls
  constructor(calls: ClientCalls) {
    this.#calls = calls
  }

  /** By name. */
  list(options: TaskCallOptions = {}): Promise<{ projects: ProjectView[] }> {
    return this.#calls.json('GET', '/projects', projectListSchema, options)
  }

  create(request: CreateProjectRequest, options: TaskCallOptions = {}): Promise<ProjectView> {
    return this.#calls.json('POST', '/projects', projectViewSchema, options, { body: JSON.stringify(request) })
  }

  get(name: string, options: TaskCallOptions = {}): Promise<ProjectView> {
    return this.#calls.json('GET', pathOf(name), projectViewSchema, options)
  }

  /** All settings anew. With `resource_version` only where it did not change since: `ProjectChanged` else. */
  replace(name: string, request: ReplaceProjectRequest, options: TaskCallOptions = {}): Promise<ProjectView> {
    return this.#calls.json('PUT', pathOf(name), projectViewSchema, options, { body: JSON.stringify(request) })
  }

  /** Some settings; `null` takes one away. `resource_version` as for `replace`. */
  change(name: string, request: PatchProjectRequest, options: TaskCallOptions = {}): Promise<ProjectView> {
    return this.#calls.json('PATCH', pathOf(name), projectViewSchema, options, { body: JSON.stringify(request) })
  }

  /** Its tasks stay as they are. */
  remove(name: string, options: TaskCallOptions = {}): Promise<void> {
    return this.#calls.nothing('DELETE', pathOf(name), options)
  }
}

const pathOf = (name: string): string => `/projects/${encodeURIComponent(name)}`
