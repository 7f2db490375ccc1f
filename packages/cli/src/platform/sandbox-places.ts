import { type AgentSandboxProvider, createProvider } from '@corral/agent-sandbox-sdk'
import type { Logger } from '@corral/ports'
import type { SandboxProviderSettings } from '@corral/protocol'
import { type ProviderStore, relayedSandboxAccess, type SandboxPlace, type SandboxPlaces } from '@corral/tasks'
import { ensureProviderPool } from './defaults.js'
import { brokerServicePort } from './names.js'

export interface SandboxPlacesOptions {
  store: ProviderStore
  /** What the platform's own sandboxes are called. */
  own: 'embedded' | 'kubernetes'
  /** The provider of tasks that name none; the platform's own where left out. */
  fallback?: string | undefined
  /** Where the broker listens, once it does. */
  broker: () => { host: string; port: number }
  log: Logger
}

/** A provider as settings describe it, without a connection yet. */
export function providerFrom(settings: SandboxProviderSettings): AgentSandboxProvider {
  const { type, name, kubeconfig, context, namespace, runtime_class_name, image } = settings
  return createProvider(type, {
    name,
    ...(kubeconfig ? { kubeconfigPath: kubeconfig } : {}),
    ...(context ? { context } : {}),
    ...(namespace ? { namespace } : {}),
    ...(runtime_class_name ? { runtimeClassName: runtime_class_name } : {}),
    ...(image ? { image } : {}),
  })
}

/** The clusters of the settings, each opened at its first use and anew when its settings change. */
export function createSandboxPlaces(options: SandboxPlacesOptions): SandboxPlaces {
  const { store, own, fallback } = options
  const open = new Map<string, { key: string; place: Promise<SandboxPlace> }>()

  async function find(name: string): Promise<SandboxPlace | undefined> {
    const settings = await store.find(name)
    const known = open.get(name)
    const key = JSON.stringify(settings)
    if (known && known.key === key) return known.place
    void known?.place.then(closePlace).catch(() => undefined)
    open.delete(name)
    if (!settings) return undefined
    const place = openPlace(settings, options)
    open.set(name, { key, place })
    // A kubeconfig that cannot be read now may be readable later.
    place.catch(() => open.delete(name))
    return place
  }

  return {
    own,
    fallback: fallback === own ? undefined : fallback,
    find,
    names: async () => [own, ...(await store.list()).map(({ name }) => name)],
    async close() {
      for (const { place } of open.values()) await place.then(closePlace).catch(() => undefined)
      open.clear()
    },
  }
}

async function openPlace(settings: SandboxProviderSettings, options: SandboxPlacesOptions): Promise<SandboxPlace> {
  const provider = providerFrom(settings)
  const kube = await provider.kube()
  const namespace = settings.namespace ?? kube.defaultNamespace
  let pool: Promise<string> | undefined
  return {
    name: settings.name,
    provider,
    namespace,
    sandboxes: relayedSandboxAccess({
      client: provider.client,
      namespace,
      port: brokerServicePort,
      target: options.broker,
      log: options.log,
    }),
    brokerUrl: `http://127.0.0.1:${brokerServicePort}`,
    hasEgressByName: false,
    packageClients: undefined,
    isolation: undefined,
    ensurePool() {
      pool ??=
        settings.pool === undefined ? ensureProviderPool(kube, namespace, settings) : Promise.resolve(settings.pool)
      pool.catch(() => {
        pool = undefined
      })
      return pool
    },
  }
}

async function closePlace(place: SandboxPlace): Promise<void> {
  await place.sandboxes.close()
  await place.provider.close()
}
