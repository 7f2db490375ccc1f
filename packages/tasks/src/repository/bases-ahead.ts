import { anySignal } from '@corral/protocol'
import type { PrepareRequest } from './repository.js'
import type { TaskBase } from './task-base.js'

/** How long what was fetched counts as the state of the repository. */
const freshMs = 10_000

interface Ahead {
  asked: string
  base: Promise<TaskBase>
  controller: AbortController
  tell: ((line: string) => void) | undefined
}

/**
 * Fetches of tasks whose sandboxes are not there yet, by the directory of the task. Whatever goes wrong with one shows when
 * the task fetches by itself.
 */
export class BasesAhead {
  readonly #fetch: (request: PrepareRequest) => Promise<TaskBase>
  readonly #ahead = new Map<string, Ahead>()

  constructor(fetch: (request: PrepareRequest) => Promise<TaskBase>) {
    this.#fetch = fetch
  }

  begin(request: PrepareRequest): void {
    const key = request.taskDirectory
    if (this.#ahead.has(key) || isOfFormerWork(request)) return
    const controller = new AbortController()
    const base = this.#fetch({
      ...request,
      signal: anySignal([request.signal, controller.signal]),
      onProgress: (line) => ahead.tell?.(line),
    })
    const ahead: Ahead = { asked: questionOf(request), base, controller, tell: undefined }
    this.#ahead.set(key, ahead)
    const forget = (): void => {
      setTimeout(() => {
        if (this.#ahead.get(key) === ahead) this.#ahead.delete(key)
      }, freshMs).unref()
    }
    base.then(forget, forget)
  }

  /** What was begun for this request; undefined where nothing was, or it failed. */
  async take(request: PrepareRequest): Promise<TaskBase | undefined> {
    const ahead = this.#ahead.get(request.taskDirectory)
    this.#ahead.delete(request.taskDirectory)
    if (!ahead || isOfFormerWork(request) || ahead.asked !== questionOf(request)) return undefined
    const stop = (): void => ahead.controller.abort(request.signal.reason)
    request.signal.addEventListener('abort', stop, { once: true })
    ahead.tell = request.onProgress
    try {
      return await ahead.base
    } catch {
      request.signal.throwIfAborted()
      return undefined
    } finally {
      request.signal.removeEventListener('abort', stop)
    }
  }
}

/** What such a task starts from is not where its branch stands. */
const isOfFormerWork = ({ baseCommit, continues, ownCommits = [] }: PrepareRequest): boolean =>
  baseCommit !== undefined || continues !== undefined || ownCommits.length > 0

const questionOf = ({ url, baseBranch, newBranch, isBaseTrusted }: PrepareRequest): string =>
  JSON.stringify([url, baseBranch, newBranch, isBaseTrusted])
