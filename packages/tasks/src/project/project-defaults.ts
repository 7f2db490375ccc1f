import {
  type AgentChoice,
  agentChoiceOf,
  type CompleteTaskRequest,
  type CreateTaskRequest,
  type ProjectSettings,
  taskLimits,
} from '@corral/protocol'
import { TaskError } from '../task-error.js'

/** Settings about the repository itself: of no use, or a risk, on another one that a request names. */
const repositorySettings = ['base_branch', 'submodules', 'lfs'] as const

/** Settings a task gets where its request does not have them. */
const plainSettings = [
  'author',
  'committer',
  'sign',
  'environment_file',
  'setup',
  'setup_timeout_seconds',
  'checks',
  'check_rounds',
  'on_failed_checks',
  'egress',
  'setup_egress',
  'runtime_class_name',
  'minimum_tier',
] as const

/**
 * A request with what its project gives: the request wins field by field, the options of one and the same agent are put
 * together, and instructions are said one after the other. Throws `Invalid` where neither names a repository.
 */
export function withProject(name: string, settings: ProjectSettings, request: CreateTaskRequest): CompleteTaskRequest {
  const repo = request.repo ?? settings.repo
  if (repo === undefined)
    throw new TaskError('Invalid', `repo: is required, since project "${name}" names no repository`, {
      hint: 'Name it in the request (`--repo`), or give the project one: `corral project edit NAME --set repo=URL`.',
    })
  const isSameRepository = repo === settings.repo
  const inherited = [...plainSettings, ...(isSameRepository ? repositorySettings : [])]
  const given = Object.fromEntries(
    inherited.flatMap((field) => (settings[field] === undefined ? [] : [[field, settings[field]]])),
  ) as Partial<CreateTaskRequest> // the fields of a project have the types of those of a request
  const instructions = joined(settings.instructions, request.instructions)
  const agent = chosen(settings.agent, request.agent)
  return {
    ...given,
    ...withoutUndefined(request),
    project: name,
    repo,
    ...(agent === undefined ? {} : { agent }),
    ...(instructions === undefined ? {} : { instructions }),
  }
}

function chosen(project: AgentChoice | undefined, request: AgentChoice | undefined): AgentChoice | undefined {
  if (project === undefined || request === undefined) return request ?? project
  const [ofProject, ofRequest] = [agentChoiceOf(project), agentChoiceOf(request)]
  return ofProject.name === ofRequest.name ? { ...ofProject, ...ofRequest } : request
}

function joined(project: string | undefined, request: string | undefined): string | undefined {
  if (project === undefined || request === undefined) return request ?? project
  const text = `${project.trimEnd()}\n\n${request}`
  if (text.length <= taskLimits.instructionsCharacters) return text
  throw new TaskError(
    'Invalid',
    `instructions: must have at most ${taskLimits.instructionsCharacters} characters together with those of the project`,
  )
}

function withoutUndefined(request: CreateTaskRequest): CreateTaskRequest {
  return Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined)) as CreateTaskRequest
}
