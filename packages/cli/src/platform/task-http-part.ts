import { AgentSandboxClient } from '@corral/agent-sandbox-sdk'
import { CorralError } from '@corral/protocol'
import {
  createAccess,
  createApp,
  createSocketUpgrades,
  type HttpServer,
  listen,
  readWebFiles,
  streamSocket,
  terminalSocket,
} from '@corral/server'
import {
  createBringHome,
  createEnvironmentService,
  createGit,
  createProjectService,
  createTaskFeed,
  createTaskService,
  createTaskTerminals,
  hasGitLfs,
  quarantineTreeReader,
  type SandboxAccess,
  sdkSandboxAccess,
} from '@corral/tasks'
import { version } from '../version.js'
import { listenRemembered } from './free-port.js'
import { platformNamespace } from './names.js'
import { createPlatformService } from './platform-service.js'
import { settingsStoreOf } from './platform-settings.js'
import { webDirectory } from './runtime-files.js'
import { taskDefaults } from './settings-store.js'
import type { TaskControllerPart } from './task-controller-part.js'
import type { TaskPlatformOptions, TaskShared } from './task-platform.js'

/** The HTTP API. It holds no state of its own: any number of processes may answer for one cluster. */
export async function startHttpPart(
  options: TaskPlatformOptions,
  shared: TaskShared,
  controller: Pick<TaskControllerPart, 'queue'> | undefined,
): Promise<HttpServer> {
  const { client, registry, log } = options
  const namespace = options.namespace ?? platformNamespace
  const { records, providers, metrics, places, spans } = shared
  const git = createGit({ globalConfig: '/dev/null', env: options.env })
  const tasks = createTaskService({
    client,
    namespace,
    records,
    ...(controller ? { queue: () => controller.queue() } : {}),
    defaultAgent: options.defaultAgent,
    providers,
    places,
    localRepositories: options.localRepositories,
    hasEgressByName: options.hasEgressByName ?? true,
    ...(options.isInstalled ? { isInstalled: options.isInstalled } : {}),
    isolation: options.isolation,
    ...(options.findIdentity ? { findIdentity: options.findIdentity } : {}),
    defaults: async () => taskDefaults((await settingsStoreOf(options).read()).settings),
    ...(options.localRepositories
      ? { bringHome: createBringHome({ git, ...(options.findIdentity ? { findIdentity: options.findIdentity } : {}) }) }
      : {}),
    trees: quarantineTreeReader({ confine: options.confine, path: options.env.PATH }),
    hasGitLfs: () => hasGitLfs(git),
    metrics,
  })
  const access = createAccess({ token: options.token, ...reachable(options) })
  const app = createApp({
    tasks,
    projects: createProjectService({ client, namespace, localRepositories: options.localRepositories }),
    environments: createEnvironmentService({
      ...{ client, namespace, records, git, localRepositories: options.localRepositories },
    }),
    token: options.token,
    access,
    web: await readWebFiles(webDirectory()),
    platform: createPlatformService(options, shared),
    session: { default_agent: options.defaultAgent, local_repositories: options.localRepositories },
    isReady: options.isReady,
    diskProblem: options.diskProblem,
    registry,
    spans,
    version,
    log,
  })
  const feed = createTaskFeed({
    client,
    namespace,
    ...(controller ? { queue: () => controller.queue() } : {}),
    log,
  })
  const reach = options.connection ? { connection: options.connection } : {}
  const own = sdkSandboxAccess(new AgentSandboxClient({ client, namespace, ...reach }))
  const sandboxes: SandboxAccess = {
    async open(sandbox, call) {
      const { provider } = sandbox
      const place = provider === undefined ? undefined : await places.find(provider)
      if (provider !== undefined && !place)
        throw new CorralError('ProviderUnreachable', `there is no provider "${provider}" of sandboxes`)
      return (place?.sandboxes ?? own).open(sandbox, call)
    },
  }
  const sockets = createSocketUpgrades({
    gate: access.gate,
    routes: [
      { path: /^\/stream$/, handle: streamSocket(tasks, feed) },
      {
        path: /^\/tasks\/([^/]+)\/terminal$/,
        handle: terminalSocket(createTaskTerminals({ tasks, sandboxes, namespace })),
      },
    ],
    log,
  })
  const http = await listenRemembered(
    options.httpPort,
    options.remembered.http,
    (port) => listen({ fetch: app.fetch, port, sockets, ...(options.httpHost ? { host: options.httpHost } : {}) }),
    '--port',
  )
  return {
    ...http,
    async close() {
      await http.close()
      await feed.close()
    },
  }
}

/** The names this server answers to besides those of loopback. */
function reachable({ httpHost, allowedHosts = [] }: TaskPlatformOptions): { hosts: string[]; anyAddress: boolean } {
  const isEverywhere = httpHost === '0.0.0.0' || httpHost === '::'
  return { hosts: [...allowedHosts, ...(httpHost && !isEverywhere ? [httpHost] : [])], anyAddress: isEverywhere }
}
