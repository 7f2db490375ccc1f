import type { ClientCalls } from './projects-client.js'
import {
  type KubeContextList,
  type KubeNameList,
  kubeContextListSchema,
  kubeNameListSchema,
  type PatchSettingsRequest,
  type SettingsView,
  settingsViewSchema,
} from './settings-api.js'
import type { TaskCallOptions } from './task-http.js'
import { searchOf } from './task-wire.js'

/** Settings of the platform, and what its kubeconfig and cluster offer for them. */
export class SettingsClient {
  readonly #calls: ClientCalls
  constructor(calls: ClientCalls) {
    this.#calls = calls
  }

  get(options: TaskCallOptions = {}): Promise<SettingsView> {
    return this.#calls.json('GET', '/settings', settingsViewSchema, options)
  }

  /** `null` takes a setting away. With `revision` only where they did not change since: `Conflict` else. */
  change(request: PatchSettingsRequest, options: TaskCallOptions = {}): Promise<SettingsView> {
    return this.#calls.json('PATCH', '/settings', settingsViewSchema, options, { body: JSON.stringify(request) })
  }

  contexts(options: TaskCallOptions = {}): Promise<KubeContextList> {
    return this.#calls.json('GET', '/kubernetes/contexts', kubeContextListSchema, options)
  }

  /** Of the cluster of a context; of the one in use without it. */
  namespaces(query: { context?: string } = {}, options: TaskCallOptions = {}): Promise<KubeNameList> {
    return this.#calls.json('GET', `/kubernetes/namespaces${searchOf(query)}`, kubeNameListSchema, options)
  }

  runtimeClasses(query: { context?: string } = {}, options: TaskCallOptions = {}): Promise<KubeNameList> {
    return this.#calls.json('GET', `/kubernetes/runtime-classes${searchOf(query)}`, kubeNameListSchema, options)
  }
}
