import {
  type ConnectionCheck,
  CorralError,
  type SandboxProviderInfo,
  type SandboxProviderSettings,
  type Settings,
} from '@corral/protocol'
import type { PlatformService } from '@corral/server'
import type { ProviderStore, SandboxPlaces } from '@corral/tasks'
import { connectionChecks } from './connection-checks.js'
import { providerFrom } from './sandbox-places.js'
import type { TaskPlatformOptions } from './task-platform.js'

/**
 * The providers of sandboxes as the HTTP API shows them. It adds none: a kubeconfig may name programs to run, so
 * that a caller of the API who could write one could run any program here.
 */
export function sandboxProviders(
  { ownProvider }: Pick<TaskPlatformOptions, 'ownProvider'>,
  places: Pick<SandboxPlaces, 'fallback'>,
  store: ProviderStore,
): Pick<PlatformService, 'sandboxProviders' | 'providerChecks'> {
  return {
    async sandboxProviders() {
      const fallback = places.fallback ?? ownProvider
      const own: SandboxProviderInfo = { name: ownProvider, type: ownProvider, is_default: fallback === ownProvider }
      const others = (await store.list()).map((settings): SandboxProviderInfo => {
        const { name } = settings
        return { name, type: 'kubernetes', is_default: fallback === name, settings }
      })
      return [own, ...others]
    },
    async *providerChecks(name, signal) {
      const settings = await store.find(name)
      if (!settings) throw new CorralError('NotFound', `there is no provider "${name}"`)
      yield* checksOfProvider(settings, signal)
    },
  }
}

/** What the platform needs of the cluster of a provider, each thing by itself. */
export async function* checksOfProvider(
  settings: SandboxProviderSettings,
  signal: AbortSignal,
): AsyncGenerator<ConnectionCheck> {
  const provider = providerFrom(settings)
  try {
    yield* connectionChecks(provider.client, settingsOf(settings), signal)
  } finally {
    await provider.close()
  }
}

function settingsOf({ context, namespace, runtime_class_name }: SandboxProviderSettings): Settings {
  return {
    provider: 'kubernetes',
    ...(context ? { context } : {}),
    ...(namespace ? { namespace } : {}),
    ...(runtime_class_name ? { runtime_class: runtime_class_name } : {}),
  }
}
