import { AgentSandboxClient, type AgentSandboxClientOptions } from '@corral/agent-sandbox-sdk'
import { listKubeContexts } from '@corral/kube'
import {
  type ConnectionCheck,
  CorralError,
  changedSettings,
  type KubeNameList,
  type Settings,
  type SettingsView,
} from '@corral/protocol'
import { Namespaces, RuntimeClasses } from '@corral/resources'
import type { SettingsService } from '@corral/server'
import { connectionChecks } from './connection-checks.js'
import { platformNamespace } from './names.js'
import { fileSettingsStore, type SettingsStore, type StoredSettings } from './settings-store.js'
import type { TaskPlatformOptions } from './task-platform.js'

const listTimeoutMs = 5_000

/** The settings of this platform: kept in its data directory, tried out on any context of its kubeconfig. */
export function createPlatformSettings(options: TaskPlatformOptions): SettingsService {
  const { client, env } = options
  const active = activeOf(options)
  const store = settingsStoreOf(options)
  const canChoose = options.runsOn?.isGiven !== true
  const viewOf = ({ settings, revision }: StoredSettings): SettingsView => ({
    ...settings,
    revision,
    active,
    can_choose_provider: canChoose,
  })
  /** A client of the cluster that settings name; ours where that is the one in use. */
  const clientOf = ({ provider, context, namespace }: Settings): AgentSandboxClient => {
    const isOurs = provider === options.ownProvider
    const reach = options.connection ? { connection: options.connection } : {}
    const ours = options.namespace ?? platformNamespace
    const own: AgentSandboxClientOptions = { client, namespace: namespace ?? ours, ...reach }
    if (isOurs) return new AgentSandboxClient(provider === 'embedded' ? { ...own, namespace: ours } : own)
    return new AgentSandboxClient({ ...(context ? { context } : {}), ...(namespace ? { namespace } : {}) })
  }
  const names = async (
    context: string | undefined,
    list: (asked: AgentSandboxClient, signal: AbortSignal) => Promise<string[]>,
  ): Promise<KubeNameList> => {
    const { settings } = await store.read()
    const asked = clientOf(context === undefined ? settings : { provider: 'kubernetes', context })
    try {
      return { names: (await list(asked, AbortSignal.timeout(listTimeoutMs))).sort() }
    } catch (error) {
      return { names: [], problem: error instanceof Error ? error.message : String(error) }
    } finally {
      await asked.close()
    }
  }
  return {
    get: async () => viewOf(await store.read()),
    async change(patch) {
      if (!canChoose && (patch.provider ?? active.provider) !== active.provider)
        throw new CorralError('Invalid', 'provider: this server was given its cluster when it was started', {
          hint: 'Start it with another kubeconfig, or use `corral up` for sandboxes on one machine.',
        })
      return viewOf(await store.change(patch))
    },
    async test(patch, signal) {
      const settings = changedSettings((await store.read()).settings, patch)
      if (settings.provider === 'embedded' && options.ownProvider !== 'embedded') return notRunning()
      return connectionChecks(clientOf(settings), settings, signal)
    },
    async contexts() {
      try {
        const found = await listKubeContexts({ env })
        return {
          contexts: found.map(({ name, cluster, namespace, isCurrent }) => ({
            name,
            is_current: isCurrent,
            ...(cluster === undefined ? {} : { cluster }),
            ...(namespace === undefined ? {} : { namespace }),
          })),
          ...(found.length > 0 ? {} : { problem: 'no kubeconfig: set KUBECONFIG where the platform starts' }),
        }
      } catch (error) {
        return { contexts: [], problem: error instanceof Error ? error.message : String(error) }
      }
    },
    namespaces: (context) =>
      names(context, async (asked, signal) =>
        (await (await asked.kube()).list(Namespaces, { signal })).items.map(({ metadata }) => metadata.name),
      ),
    runtimeClasses: (context) =>
      names(context, async (asked, signal) =>
        (await (await asked.kube()).list(RuntimeClasses, { signal })).items.map(({ metadata }) => metadata.name),
      ),
  }
}

/** The settings of a platform, also for the parts of it that read what was chosen. */
export function settingsStoreOf(options: Pick<TaskPlatformOptions, 'directory' | 'runsOn'>): SettingsStore {
  return fileSettingsStore(options.directory.settings, { provider: options.runsOn?.provider ?? 'embedded' })
}

function activeOf({ runsOn, namespace }: TaskPlatformOptions): SettingsView['active'] {
  return {
    provider: runsOn?.provider ?? 'embedded',
    ...(runsOn?.context ? { context: runsOn.context } : {}),
    namespace: runsOn?.namespace ?? namespace ?? platformNamespace,
  }
}

async function* notRunning(): AsyncGenerator<ConnectionCheck> {
  yield {
    check: 'api',
    title: 'Kubernetes API',
    state: 'skipped',
    detail: 'the cluster of this machine does not run now; the next start of the platform brings it',
    ms: 0,
  }
}
