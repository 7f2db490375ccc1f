import { agentChoiceOf, credentialInUrl, type ProjectSettings, type ProjectView, redactUrls } from '@corral/protocol'
import type { Project, ProjectSpec, Stored } from '@corral/resources'
import { agentChoiceFrom, agentSpecOf } from '../agent-spec.js'
import { checksRequest, checksSpec } from '../checks/check-request.js'
import { TaskError } from '../task-error.js'
import { submoduleDepths, submoduleWords } from '../task-request.js'

/** Settings as a Project's spec holds them. Throws `UnknownAgent` or `Invalid` for an agent that is none. */
export function projectSpecFrom(settings: ProjectSettings): ProjectSpec {
  const lone = (['base_branch', 'submodules', 'lfs'] as const).find((field) => settings[field] !== undefined)
  if (settings.repo === undefined && lone)
    throw new TaskError('Invalid', `${lone}: goes with repo, which the project does not name`)
  const { repo, submodules, lfs, environment_file, setup, setup_timeout_seconds } = settings
  const environment = defined({
    file: environment_file,
    setup,
    setupTimeoutSeconds: setup_timeout_seconds,
  })
  return {
    ...defined({
      description: settings.description,
      baseBranch: settings.base_branch,
      agent: settings.agent === undefined ? undefined : agentSpecOf(settings.agent),
      instructions: settings.instructions,
      author: settings.author,
      committer: settings.committer,
      sign: settings.sign,
      egress: settings.egress,
      setupEgress: settings.setup_egress,
      runtimeClassName: settings.runtime_class_name,
      minimumTier: settings.minimum_tier,
    }),
    ...(repo === undefined
      ? {}
      : {
          repository: {
            url: repo,
            ...(submodules === undefined ? {} : { submodules: submoduleDepths[String(submodules)]! }),
            ...defined({ lfs }),
          },
        }),
    ...(Object.keys(environment).length > 0 ? { environment } : {}),
    ...checksSpec(settings),
  }
}

/** The settings such a spec came from. One that was made with kubectl may hold what the API would have refused. */
export function settingsFrom({ spec }: Project): ProjectSettings {
  const { repository, environment } = spec
  return {
    ...defined({
      description: spec.description,
      repo: repository?.url,
      submodules: repository?.submodules && submoduleWords[repository.submodules],
      lfs: repository?.lfs,
      base_branch: spec.baseBranch,
      agent: spec.agent && agentChoiceFrom(spec.agent),
      instructions: spec.instructions,
      author: spec.author,
      committer: spec.committer,
      sign: spec.sign,
      environment_file: environment?.file,
      setup: environment?.setup,
      setup_timeout_seconds: environment?.setupTimeoutSeconds,
    }),
    ...checksRequest(spec),
    ...defined({
      egress: spec.egress,
      setup_egress: spec.setupEgress,
      runtime_class_name: spec.runtimeClassName,
      minimum_tier: spec.minimumTier,
    }),
  }
}

/** A project as the API shows it. */
export function projectView(project: Stored<Project>): ProjectView {
  const { agent, repo, ...settings } = settingsFrom(project)
  const { name, resourceVersion, creationTimestamp } = project.metadata
  return {
    name,
    ...(settings as Omit<ProjectView, 'agent' | 'repo' | 'name' | 'resource_version' | 'created_at'>), // nothing is set to undefined
    ...(repo === undefined ? {} : { repo: credentialInUrl(repo) ? redactUrls(repo) : repo }),
    ...(agent === undefined ? {} : { agent: agentChoiceOf(agent) }),
    resource_version: resourceVersion,
    created_at: creationTimestamp,
  }
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function defined<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as Defined<T>
}
