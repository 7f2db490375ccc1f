/** What an API server answers, as loosely as a test needs it: a missing field fails the assertion that reads it. */
export interface KubeBody {
  readonly kind: string
  readonly apiVersion: string
  readonly metadata: KubeMeta
  readonly items: readonly KubeBody[]
  readonly data: Readonly<Record<string, string>>
  readonly status: unknown
  readonly message: string
  readonly reason: string
  readonly code: number
  readonly details: {
    readonly name?: string
    readonly group?: string
    readonly kind?: string
    readonly uid?: string
    readonly retryAfterSeconds?: number
    readonly causes?: readonly { readonly reason?: string; readonly message?: string; readonly field?: string }[]
  }
  readonly [field: string]: unknown
}

export interface KubeMeta {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly resourceVersion: string
  readonly creationTimestamp: string
  readonly generation?: number
  readonly deletionTimestamp?: string
  readonly deletionGracePeriodSeconds?: number
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly object[]
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly managedFields?: readonly ManagedEntry[]
  readonly continue?: string
  readonly remainingItemCount?: number
}

export interface ManagedEntry {
  readonly manager: string
  readonly operation: string
  readonly apiVersion: string
  readonly fieldsType: string
  readonly subresource?: string
  readonly fieldsV1: Readonly<Record<string, unknown>>
}

export function parse(text: string, asked: string): KubeBody {
  try {
    return JSON.parse(text) as KubeBody
  } catch (cause) {
    throw new Error(`${asked}: not JSON: ${text.slice(0, 300)}`, { cause })
  }
}

/** The value at a dotted path, numbers being indices; undefined where the road ends. */
export function at(value: unknown, path: string): unknown {
  let here = value
  for (const step of path.split('.')) {
    if (here === null || typeof here !== 'object') return undefined
    here = (here as Record<string, unknown>)[step]
  }
  return here
}
