import { agentAdapters } from '@corral/agents'
import type { AgentInfo, SecretInfo } from '@corral/protocol'
import { clusterView, type PlatformService } from '@corral/server'
import { fileSecretStore, type ModelProviders, type SandboxPlaces, taskLabel } from '@corral/tasks'
import { installedAgents } from '../installed-agents.js'
import { demoRequest } from './demo-request.js'
import { platformNamespace } from './names.js'
import { createPlatformSettings } from './platform-settings.js'
import { sandboxProviders } from './sandbox-providers.js'
import type { TaskPlatformOptions, TaskShared } from './task-platform.js'

/** What the pages show of this platform. */
export function createPlatformService(
  options: TaskPlatformOptions,
  { providers, places, providerStore }: Pick<TaskShared, 'providers' | 'places' | 'providerStore'>,
): PlatformService {
  const { client, directory } = options
  const namespace = options.namespace ?? platformNamespace
  const secrets = fileSecretStore(directory.secrets)
  return {
    ...viewInUse(clusterView(client, namespace, taskLabel), places),
    agents: () => agentInfos(options, providers),
    async secrets() {
      const wanted = (await providers.list()).map(({ secret, title }) => ({ name: secret, title: `Key of ${title}` }))
      const names = await secrets.list()
      const all = new Map<string, SecretInfo>()
      for (const { name, title } of wanted) all.set(name, { name, title, is_set: names.includes(name) })
      for (const name of names) if (!all.has(name)) all.set(name, { name, is_set: true })
      return [...all.values()]
    },
    setSecret: (name, value) => secrets.set(name, value),
    async removeSecret(name) {
      await secrets.remove(name)
    },
    settings: createPlatformSettings(options),
    ...sandboxProviders(options, places, providerStore),
    demo: async () => (options.localRepositories ? demoRequest(directory.demo) : undefined),
  }
}

type ClusterView = ReturnType<typeof clusterView>

/** What is shown is the cluster in use: that of tasks that name no provider. Tasks and projects are the platform's own. */
function viewInUse(own: ClusterView, places: SandboxPlaces): ClusterView {
  const inUse = async (): Promise<ClusterView> => {
    const place = places.fallback === undefined ? undefined : await places.find(places.fallback)
    return place ? clusterView(await place.provider.kube(), place.namespace, taskLabel) : own
  }
  return {
    sandboxes: async () => (await inUse()).sandboxes(),
    pools: async () => (await inUse()).pools(),
    resizePool: async (name, replicas) => (await inUse()).resizePool(name, replicas),
    object: async (kind, name) => (kind === 'agenttask' || kind === 'project' ? own : await inUse()).object(kind, name),
  }
}

async function agentInfos(
  { isInstalled, directory }: TaskPlatformOptions,
  providers: ModelProviders,
): Promise<AgentInfo[]> {
  const versions = new Map(installedAgents(directory.agents).map(({ name, version }) => [name, version]))
  const all = [...agentAdapters.values()].map(async (adapter): Promise<AgentInfo> => {
    const { name, title, summary, install, speaks, options } = adapter
    const isMissing = install !== undefined && (await isInstalled?.(install.program)) === false
    const provider = speaks?.[0] === undefined ? undefined : await providers.find(speaks[0])
    const needsKey = provider !== undefined && !(await providers.isUsable(provider))
    const version = versions.get(name)
    const problem = isMissing
      ? `${title} is not installed: corral agent install ${name}`
      : needsKey
        ? `${title} needs a key for ${provider.title}: give it under Settings, Agents and keys`
        : undefined
    return {
      name,
      title,
      summary,
      is_ready: problem === undefined,
      // Its options have one: the command line itself, and any program that speaks the Agent Client Protocol.
      takes_command: options.safeParse({ command: 'true' }).success,
      ...(version === undefined ? {} : { version }),
      ...(problem === undefined ? {} : { problem }),
      ...(isMissing ? { install: `corral agent install ${name}` } : {}),
      ...(needsKey ? { needs_secret: provider.secret } : {}),
    }
  })
  return Promise.all(all)
}
