import type { KubeClient } from '@corral/kube'
import { anySignal } from '@corral/protocol'
import { errorCode, type KubeObject, type ResourceKind, type Stored } from '@corral/resources'
import { SandboxError, toSandboxError } from './sandbox-error.js'
import { timeSignal } from './time-limit.js'

export interface WaitOptions {
  /** 180 s without it. */
  timeoutMs?: number | undefined
  signal?: AbortSignal | undefined
}

/** What a look at the object says: done, a failure, or why not yet. */
export type Verdict = { done: true } | { done: false; why: string } | { done: false; failure: SandboxError }

/** Answers to a watch that waiting does not change. */
const refusals: ReadonlySet<string | undefined> = new Set(['Forbidden', 'Unauthorized'])

/**
 * Watches one object, from `known` on where it was just read or written, until `judge` is content, and resolves to it as it is then. Rejects with `NotFound`, with
 * `SandboxDeleted` when it goes away or is replaced, with the judge's failure, at once with the reason of a watch that is
 * refused, or with `SandboxNotReady` and the last known reason when the time is over.
 */
export async function waitFor<T extends KubeObject>(
  kube: KubeClient,
  kind: ResourceKind<T>,
  ref: { name: string; namespace: string },
  judge: (object: Stored<T>) => Verdict,
  options: WaitOptions & { known?: Stored<T> | undefined } = {},
): Promise<Stored<T>> {
  const { timeoutMs = 180_000, signal: callerSignal } = options
  const what = `${kind.kind} "${ref.name}" in "${ref.namespace}"`
  const timeout = timeSignal(timeoutMs)
  const refused = new AbortController()
  const signal = anySignal([...(callerSignal ? [callerSignal] : []), timeout, refused.signal])
  // The watch itself goes on for ever, since a permission may come; a caller that waits wants to know.
  const onError = (error: unknown) => {
    if (refusals.has(errorCode(error))) refused.abort(error)
  }
  let why = 'nothing is known of it'
  try {
    const first = options.known ?? (await kube.get(kind, ref, { signal }))
    const settle = (object: Stored<T>): boolean => {
      const verdict = judge(object)
      if (verdict.done) return true
      if ('failure' in verdict) throw verdict.failure
      why = verdict.why
      return false
    }
    if (settle(first)) return first
    const { uid, resourceVersion } = first.metadata
    const where = {
      namespace: ref.namespace,
      fieldSelector: `metadata.name=${ref.name}`,
      resourceVersion,
      signal,
      onError,
    }
    for await (const { type, object } of kube.watch(kind, where)) {
      if (type === 'DELETED' || object.metadata.uid !== uid)
        throw new SandboxError('SandboxDeleted', `${what} was deleted`)
      if (settle(object)) return object
    }
  } catch (error) {
    if (error instanceof SandboxError) throw error
    if (!timeout.aborted || callerSignal?.aborted) throw toSandboxError(error, callerSignal)
  }
  if (callerSignal?.aborted) throw new SandboxError('Aborted', 'the call was aborted')
  if (refused.signal.aborted) throw toSandboxError(refused.signal.reason)
  throw new SandboxError('SandboxNotReady', `${what} is not there after ${timeoutMs / 1000} s: ${why}`)
}
