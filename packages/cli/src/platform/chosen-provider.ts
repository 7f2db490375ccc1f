import type { SandboxProviderSettings, Settings } from '@corral/protocol'
import type { ProviderStore } from '@corral/tasks'

/** What the cluster that was chosen under Settings is called among the providers. */
export const chosenProviderName = 'kubernetes'

/** The providers of a platform, with the cluster of its settings among them. One that was added by that name wins. */
export function withChosenProvider(store: ProviderStore, settings: Settings): ProviderStore {
  const chosen = chosenProvider(settings)
  if (!chosen) return store
  const list = async (): Promise<SandboxProviderSettings[]> => {
    const added = await store.list()
    return added.some(({ name }) => name === chosen.name) ? added : [...added, chosen]
  }
  return { ...store, list, find: async (name) => (await list()).find((provider) => provider.name === name) }
}

function chosenProvider({
  provider,
  context,
  namespace,
  runtime_class,
}: Settings): SandboxProviderSettings | undefined {
  if (provider !== 'kubernetes') return undefined
  return {
    name: chosenProviderName,
    type: 'kubernetes',
    ...(context ? { context } : {}),
    ...(namespace ? { namespace } : {}),
    ...(runtime_class ? { runtime_class_name: runtime_class } : {}),
  }
}
