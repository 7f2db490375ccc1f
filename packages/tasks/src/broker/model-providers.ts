import { type AgentAdapter, endpointProvider, findProvider, type Provider, providers } from '@corral/agents'
import type { SecretStore } from '../secrets/secret-store.js'
import { TaskError } from '../task-error.js'
import type { EndpointStore } from './endpoint-store.js'

/** The providers of a platform: those we know and its own endpoints, with their keys. */
export interface ModelProviders {
  find(name: string): Promise<Provider | undefined>
  list(): Promise<Provider[]>
  /** The key for a provider; undefined where none is set. */
  keyOf(provider: Provider): Promise<string | undefined>
  /** Whether calls can be made: it has a key or needs none. */
  isUsable(provider: Provider): Promise<boolean>
  baseUrlOf(provider: Provider): string
}

export function createModelProviders(options: {
  endpoints: Pick<EndpointStore, 'find' | 'list'>
  secrets: Pick<SecretStore, 'find'>
  env: Readonly<Record<string, string | undefined>>
}): ModelProviders {
  const { endpoints, secrets, env } = options
  const fromEnv = (variable: string | undefined): string | undefined =>
    (variable === undefined ? undefined : env[variable]) || undefined
  const keyOf: ModelProviders['keyOf'] = async (provider) =>
    (await secrets.find(provider.secret)) ?? fromEnv(provider.keyVariable)
  return {
    async find(name) {
      const known = findProvider(name)
      if (known) return known
      const endpoint = await endpoints.find(name)
      return endpoint && endpointProvider(endpoint)
    },
    async list() {
      return [...providers.values(), ...(await endpoints.list()).map(endpointProvider)]
    },
    keyOf,
    isUsable: async (provider) => provider.isKeyOptional === true || (await keyOf(provider)) !== undefined,
    baseUrlOf: (provider) => fromEnv(provider.baseUrlVariable) ?? provider.defaultBaseUrl,
  }
}

/** The provider a request may name for an agent: one that is there and speaks what the agent speaks. */
export async function checkProvider(adapter: AgentAdapter, name: string, known: ModelProviders): Promise<void> {
  const provider = await known.find(name)
  if (!provider) {
    const names = (await known.list()).map((entry) => entry.name).join(', ')
    throw new TaskError('Invalid', `agent ${adapter.name}: there is no provider or endpoint "${name}"`, {
      hint: `Use one of: ${names}; add an endpoint with \`corral endpoint add\`.`,
    })
  }
  if (adapter.speaks && !adapter.speaks.includes(provider.kind))
    throw new TaskError(
      'Invalid',
      `agent ${adapter.name}: "${name}" speaks the API of ${provider.kind}, the agent that of ${adapter.speaks.join(' or ')}`,
      { hint: 'Choose another provider or another agent; docs/agents.md shows which go together.' },
    )
}
