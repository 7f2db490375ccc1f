import type { Clock, Logger } from '@corral/ports'
import { type AgentTask, isNotFound, type Stored } from '@corral/resources'
import type { EnvironmentBuilds } from '../environment/build/environment-builds.js'
import type { EnvironmentGrants } from '../environment/environment-grants.js'
import { enterPhase } from '../environment/network-phase.js'
import type { PackageClients } from '../environment/package-clients.js'
import type { SandboxContext } from '../environment/sandbox-context.js'
import { applyImage, applyResources, sandboxLimits } from '../environment/sandbox-resources.js'
import { watchRefusals } from '../environment/watch-refusals.js'
import type { TaskClient } from '../places/place-client.js'
import type { TaskRecords } from '../records/task-records.js'
import type { Repository } from '../repository/repository.js'
import type { SandboxAccess, SandboxSession } from '../sandbox/sandbox-session.js'
import { findWorkspace, type Workspace } from '../sandbox/workspace.js'
import type { SecretStore } from '../secrets/secret-store.js'
import { TaskError } from '../task-error.js'

/** Where what a context gives out comes from. */
export interface SandboxContextPorts {
  client: TaskClient
  sandboxes: SandboxAccess
  repository: Repository
  records: TaskRecords
  /** How package clients inside reach the package mirror, where the platform has one. */
  packageClients?: PackageClients
  /** Whether nodes let a task reach addresses by name, as ours do: a task that asks for it ends where this is false. */
  hasEgressByName?: boolean
  /** What environment files may open, per repository; nothing but the package mirror where left out. */
  environmentGrants?: Pick<EnvironmentGrants, 'of'>
  /** Where secrets that repositories were granted are kept. */
  secrets?: Pick<SecretStore, 'find'>
  clock: Clock
  log: Logger
}

/** The line to one sandbox, opened when it is first needed. */
export interface SandboxLine {
  openSandbox(): Promise<SandboxSession>
  findWorkspace(): Promise<Workspace>
  close(): Promise<void>
}

export function sandboxLine(
  { metadata, status }: Stored<AgentTask>,
  { sandboxes }: Pick<SandboxContextPorts, 'sandboxes'>,
  signal: AbortSignal,
): SandboxLine {
  let session: Promise<SandboxSession> | undefined
  let workspace: Promise<Workspace> | undefined
  const openSandbox = (): Promise<SandboxSession> => {
    const name = status?.sandbox?.sandboxName
    if (!name) return Promise.reject(new TaskError('InternalError', 'the sandbox was not recorded'))
    session ??= sandboxes
      .open({ namespace: metadata.namespace ?? 'default', name }, { signal })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error
        throw new TaskError('SandboxLost', `the sandbox ${name} is gone`, { cause: error })
      })
    return session
  }
  return {
    openSandbox,
    findWorkspace() {
      workspace ??= openSandbox().then(({ daemon }) => findWorkspace(daemon, metadata.uid, signal))
      return workspace
    },
    close: async () => session?.then((open) => open.close()).catch(() => undefined),
  }
}

/** The context of work for a task, or for a build that is shown as one. */
export function sandboxContext(
  task: Stored<AgentTask>,
  { openSandbox, findWorkspace: workspaceOf }: SandboxLine,
  ports: SandboxContextPorts,
  run: { environments: EnvironmentBuilds | undefined; signal: AbortSignal; log: Logger },
): SandboxContext {
  const context: SandboxContext = {
    task,
    openSandbox,
    findWorkspace: workspaceOf,
    record: ports.records.of(task.metadata.uid),
    repository: ports.repository,
    eventLog: ports.records.events,
    enterPhase: (phase) => enterPhase(ports, task, phase, run.signal),
    watchRefusals: () => watchRefusals(context, ports.client),
    grantedTo: async (repository) => (await ports.environmentGrants?.of(repository)) ?? { egress: [], secrets: [] },
    sandboxLimits: () => sandboxLimits(ports.client, task),
    applyResources: async (resources) => {
      if (ports.hasEgressByName === false) return false
      await applyResources(ports.client, task, resources, run.signal)
      return true
    },
    applyImage: async (image) => {
      if (ports.hasEgressByName === false) return false
      await applyImage(ports.client, task, image, run.signal)
      return true
    },
    findSecret: async (name) => ports.secrets?.find(name),
    packageClients: ports.packageClients,
    environments: run.environments,
    signal: run.signal,
    now: () => ports.clock.now(),
    log: run.log,
  }
  return context
}
