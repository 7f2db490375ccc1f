import type { SandboxClaim, Stored } from '@corral/resources'
import type { AgentSandboxClient } from '../agent-sandbox-client.js'

/** What marks the claims of this facade, and where their metadata is. */
export const marker = { 'corral.dev/e2b': 'true' }
export const metadataKey = 'corral.dev/e2b-metadata'

export type SandboxState = 'running' | 'paused'

export interface SandboxInfo {
  readonly sandboxId: string
  readonly templateId: string
  readonly metadata: Readonly<Record<string, string>>
  readonly state: SandboxState
  readonly startedAt: Date
  readonly endAt: Date | undefined
}

export interface SandboxListOptions {
  /** Those that carry all of `metadata` and are in one of the states. */
  readonly query?: {
    readonly metadata?: Readonly<Record<string, string>>
    readonly state?: readonly SandboxState[]
  }
  /** How many `nextItems` answers at once; 100 without it. */
  readonly limit?: number
}

/** All sandboxes found, and the pages of them for code that awaits the paginator first. */
export type SandboxList = SandboxInfo[] & Pick<SandboxPaginator, 'hasNext' | 'nextItems'>

/** What `Sandbox.list` answers. */
export class SandboxPaginator implements PromiseLike<SandboxList> {
  readonly #options: SandboxListOptions
  readonly #withClient: <T>(call: (client: AgentSandboxClient) => Promise<T>) => Promise<T>
  #found: Promise<SandboxInfo[]> | undefined
  #given = 0
  #hasNext = true

  constructor(
    options: SandboxListOptions,
    withClient: <T>(call: (client: AgentSandboxClient) => Promise<T>) => Promise<T>,
  ) {
    this.#options = options
    this.#withClient = withClient
  }

  /** True until the last page was given. */
  get hasNext(): boolean {
    return this.#hasNext
  }

  async nextItems(): Promise<SandboxInfo[]> {
    const all = await this.#all()
    const page = all.slice(this.#given, this.#given + (this.#options.limit ?? 100))
    this.#given += page.length
    this.#hasNext = this.#given < all.length
    return page
  }

  // biome-ignore lint/suspicious/noThenProperty: awaiting the list gives the whole of it, as E2B's first version does.
  then<A = SandboxList, B = never>(
    onFulfilled?: ((found: SandboxList) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const list = async (): Promise<SandboxList> =>
      Object.defineProperties([...(await this.#all())], {
        hasNext: { get: () => this.#hasNext },
        nextItems: { value: () => this.nextItems() },
      }) as SandboxList
    return list().then(onFulfilled, onRejected)
  }

  #all(): Promise<SandboxInfo[]> {
    this.#found ??= this.#withClient((client) => this.#read(client))
    return this.#found
  }

  async #read(client: AgentSandboxClient): Promise<SandboxInfo[]> {
    const { metadata = {}, state } = this.#options.query ?? {}
    const wanted = Object.entries(metadata)
    const labelSelector = Object.entries(marker)
      .map(([key, value]) => `${key}=${value}`)
      .join(',')
    const paused = await pausedOf(client)
    const found: SandboxInfo[] = []
    for await (const claim of client.claims.list({ labelSelector })) {
      const info = infoOf(claim, paused.has(claim.status?.sandbox?.name ?? ''))
      const fits = wanted.every(([key, value]) => info.metadata[key] === value)
      if (fits && (!state || state.includes(info.state))) found.push(info)
    }
    return found
  }
}

/** Names of the sandboxes that are suspended: a claim does not say it of its own. */
export async function pausedOf(client: AgentSandboxClient): Promise<Set<string>> {
  const paused = new Set<string>()
  for await (const { metadata, spec } of client.sandboxes.list()) {
    if (spec.operatingMode === 'Suspended') paused.add(metadata.name)
  }
  return paused
}

export function infoOf({ metadata, spec }: Stored<SandboxClaim>, isPaused: boolean): SandboxInfo {
  const end = spec.lifecycle?.shutdownTime
  return {
    sandboxId: metadata.name,
    templateId: spec.warmPoolRef?.name ?? '',
    metadata: parsed(metadata.annotations?.[metadataKey]),
    state: isPaused ? 'paused' : 'running',
    startedAt: new Date(metadata.creationTimestamp ?? 0),
    endAt: end === undefined ? undefined : new Date(end),
  }
}

/** An annotation can be edited with kubectl: values that are no strings are left out, text that is no JSON counts as empty. */
function parsed(text: string | undefined): Record<string, string> {
  try {
    const value: unknown = JSON.parse(text ?? '{}')
    const entries = typeof value === 'object' && value !== null ? Object.entries(value) : []
    return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
  } catch {
    return {}
  }
}
