import type { SandboxProviderSettings } from '@corral/protocol'
import type { ProviderStore } from '@corral/tasks'
import { describe, expect, it } from 'vitest'
import { withChosenProvider } from './chosen-provider.js'

function storeOf(...providers: SandboxProviderSettings[]): ProviderStore {
  return {
    list: async () => providers,
    find: async (name) => providers.find((each) => each.name === name),
    put: async () => undefined,
    remove: async () => false,
  }
}

describe('the cluster that was chosen under Settings', () => {
  it('is a provider with its context, namespace and runtime class', async () => {
    const settings = { provider: 'kubernetes', context: 'lab', namespace: 'agents', runtime_class: 'gvisor' } as const
    const store = withChosenProvider(storeOf(), settings)
    expect(await store.list()).toEqual([
      { name: 'kubernetes', type: 'kubernetes', context: 'lab', namespace: 'agents', runtime_class_name: 'gvisor' },
    ])
    expect(await store.find('kubernetes')).toMatchObject({ context: 'lab' })
  })

  it('gives way to a provider that was added by the same name', async () => {
    const added = { name: 'kubernetes', type: 'kubernetes', context: 'other' } as const
    const store = withChosenProvider(storeOf(added), { provider: 'kubernetes', context: 'lab' })
    expect(await store.list()).toEqual([added])
  })

  it('is none where sandboxes run on this machine', async () => {
    expect(await withChosenProvider(storeOf(), { provider: 'embedded' }).list()).toEqual([])
  })
})
