import type { KubeClient } from '@corral/kube'
import type {
  CreateProjectRequest,
  PatchProjectRequest,
  ProjectSettings,
  ProjectView,
  ReplaceProjectRequest,
} from '@corral/protocol'
import { isAlreadyExists, isConflict, isNotFound, type Project, Projects, type Stored } from '@corral/resources'
import { checkLocalRequest, localPathOf } from '../repository/local-repository.js'
import { parseRepositoryUrl } from '../repository/repository-url.js'
import { TaskError } from '../task-error.js'
import { projectSpecFrom, projectView, settingsFrom } from './project-object.js'

/** Projects as people and tools see them. `ProjectNotFound` where there is none of the name. */
export interface ProjectService {
  /** By name. */
  list(): Promise<ProjectView[]>
  create(request: CreateProjectRequest): Promise<ProjectView>
  get(name: string): Promise<ProjectView>
  /** All settings anew. With `resource_version` only where it is the version there is: `ProjectChanged` else. */
  replace(name: string, request: ReplaceProjectRequest): Promise<ProjectView>
  /** Some settings; `null` takes one away. */
  change(name: string, request: PatchProjectRequest): Promise<ProjectView>
  /** Tasks of the project stay, with what it gave them. */
  remove(name: string): Promise<void>
}

export interface ProjectServiceOptions {
  client: KubeClient
  namespace: string
  /** See `TaskServiceOptions`. */
  localRepositories: boolean
}

export function createProjectService(options: ProjectServiceOptions): ProjectService {
  const { client, namespace } = options

  const write = async (current: Stored<Project>, settings: ProjectSettings): Promise<ProjectView> => {
    const spec = projectSpecFrom(settings)
    // A repository that the project has had is not looked at again: it may be away for a while.
    if (spec.repository?.url !== current.spec.repository?.url || spec.baseBranch !== current.spec.baseBranch)
      await checkRepository(settings, options)
    return projectView(await client.update(Projects, { ...current, spec }))
  }

  /** Without a version of the caller's the change is made to whatever there is, however often others write meanwhile. */
  const change = async (
    name: string,
    version: string | undefined,
    settingsOf: (current: Stored<Project>) => ProjectSettings,
  ): Promise<ProjectView> => {
    for (;;) {
      const current = await getProject(client, namespace, name)
      if (version !== undefined && current.metadata.resourceVersion !== version) throw changed(name)
      try {
        return await write(current, settingsOf(current))
      } catch (error) {
        if (!isConflict(error)) throw error
        if (version !== undefined) throw changed(name)
      }
    }
  }

  return {
    async list() {
      const { items } = await client.list(Projects, { namespace })
      return items.map(projectView).sort((one, other) => one.name.localeCompare(other.name))
    },
    async create({ name, ...settings }) {
      const spec = projectSpecFrom(settings)
      await checkRepository(settings, options)
      try {
        return projectView(
          await client.create(Projects, {
            apiVersion: 'corral.dev/v1alpha1',
            kind: 'Project',
            metadata: { name, namespace },
            spec,
          }),
        )
      } catch (error) {
        if (isAlreadyExists(error)) throw new TaskError('ProjectExists', `there is a project "${name}" already`)
        throw error
      }
    },
    get: async (name) => projectView(await getProject(client, namespace, name)),
    replace: (name, { resource_version, ...settings }) => change(name, resource_version, () => settings),
    change: (name, { resource_version, ...changes }) =>
      change(name, resource_version, (current) => patched(settingsFrom(current), changes)),
    async remove(name) {
      await getProject(client, namespace, name)
      await client.delete(Projects, { namespace, name }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error
      })
    },
  }
}

/** Throws `ProjectNotFound`. */
export async function getProject(
  client: Pick<KubeClient, 'get'>,
  namespace: string,
  name: string,
): Promise<Stored<Project>> {
  try {
    if (/^[a-z0-9][a-z0-9.-]{0,252}$/.test(name)) return await client.get(Projects, { namespace, name })
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  throw new TaskError('ProjectNotFound', `there is no project "${name.slice(0, 100)}"`)
}

/** Settings with changes; `null` takes one away. */
export function patched(
  settings: ProjectSettings,
  changes: Omit<PatchProjectRequest, 'resource_version'>,
): ProjectSettings {
  const merged = { ...settings, ...changes }
  return Object.fromEntries(
    Object.entries(merged).filter(([, value]) => value !== null && value !== undefined),
  ) as ProjectSettings
}

async function checkRepository(
  { repo, base_branch }: ProjectSettings,
  { localRepositories }: ProjectServiceOptions,
): Promise<void> {
  if (repo === undefined) return
  const path = localPathOf(parseRepositoryUrl(repo))
  if (path === undefined) return
  if (!localRepositories)
    throw new TaskError('LocalRepositoryRefused', `${path} is on a disk of the server, which takes remote ones only`, {
      hint: 'Give an https:// or ssh:// address, or start the server with --local-repositories.',
    })
  await checkLocalRequest(path, { baseBranch: base_branch })
}

function changed(name: string): TaskError {
  return new TaskError('ProjectChanged', `project "${name}" was changed since it was read`)
}
