import { commandLineAgentName } from '@corral/agents'
import {
  issueWords,
  type PatchProjectRequest,
  type ProjectField,
  type ProjectSettings,
  type ProjectView,
  patchProjectRequestSchema,
  projectFields,
  projectSettingsSchema,
} from '@corral/protocol'
import { dump, load } from 'js-yaml'
import { CliError } from '../cli-error.js'
import { identityFrom } from '../platform/identity-option.js'
import { absoluteRepo } from './task-request.js'

/** Settings whose value is text as it stands: `--set setup=true` is a command, not a truth. */
const textFields: ReadonlySet<string> = new Set([
  'description',
  'repo',
  'base_branch',
  'instructions',
  'environment_file',
  'setup',
  'runtime_class_name',
  'minimum_tier',
])

/** `name=value` of `--set`; the name may have a second part, as in `agent.model=…`. An empty value takes it away. */
export interface Assignment {
  field: ProjectField
  member: string | undefined
  value: unknown
}

export function parseAssignment(text: string): Assignment {
  const at = text.indexOf('=')
  const [name = '', member, ...rest] = text.slice(0, Math.max(at, 0)).split('.')
  const field = projectFields.find((known) => known === name)
  if (at <= 0 || rest.length > 0 || member === '' || !field)
    throw usage(
      at <= 0 ? `--set ${text}: must be NAME=VALUE` : `--set ${text}: a project has no setting "${name}"`,
      `Settings: ${projectFields.join(', ')}; a part of one as in agent.model=NAME.`,
    )
  const value = text.slice(at + 1)
  if (value === '') return { field, member, value: null }
  if (textFields.has(field)) return { field, member, value: field === 'repo' ? absoluteRepo(value) : value }
  const isIdentity = (field === 'author' || field === 'committer') && member === undefined
  return { field, member, value: isIdentity ? identityFrom(`--set ${field}`, value) : yamlValue(text, value) }
}

/** The change that assignments make to a project as it is. Throws where one is no part of what it names. */
export function changesFrom(assignments: readonly Assignment[], current: Partial<ProjectView>): PatchProjectRequest {
  const changes: Record<string, unknown> = {}
  for (const { field, member, value } of assignments) {
    const before = field in changes ? changes[field] : current[field]
    changes[field] = member === undefined ? value : withMember(before, member, value)
  }
  return checked(patchProjectRequestSchema.safeParse(changes))
}

function withMember(before: unknown, member: string, value: unknown): object {
  const object: Record<string, unknown> = { ...(typeof before === 'object' ? before : {}) }
  if (value === null) delete object[member]
  else object[member] = value
  return object
}

/** The settings of a YAML document, as `projectYaml` writes it. */
export function settingsFromYaml(text: string, source: string): ProjectSettings {
  let value: unknown
  try {
    // A document without content is an error to the parser; here it means no settings.
    value = /^\s*[^\s#]/m.test(text) ? (load(text) ?? {}) : {}
  } catch (cause) {
    throw usage(`${source} cannot be read as YAML: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
  if (typeof value !== 'object' || Array.isArray(value)) throw usage(`${source}: must be settings, one a line`)
  return checked(projectSettingsSchema.safeParse(withPath(value as Record<string, unknown>)), source)
}

const withPath = (value: Record<string, unknown>): Record<string, unknown> =>
  typeof value.repo === 'string' ? { ...value, repo: absoluteRepo(value.repo) } : value

/** A project's settings for people to read and change. */
export function projectYaml(project: Partial<ProjectView>): string {
  const settings = Object.fromEntries(
    projectFields.flatMap((field) => (project[field] === undefined ? [] : [[field, project[field]]])),
  )
  return Object.keys(settings).length === 0 ? '' : dump(settings, { lineWidth: 120, noRefs: true })
}

/** What an agent's options stand for where a project is made: a command line is an agent by itself. */
export function agentFrom(options: { agent?: string; command?: string; model?: string }): ProjectSettings['agent'] {
  const name = options.agent ?? (options.command ? commandLineAgentName : undefined)
  if (name === undefined) {
    if (options.model) throw usage('--model: for which agent?', 'Name it with --agent; `corral agent list` shows them.')
    return undefined
  }
  const { command, model } = options
  return { name, ...(command ? { command } : {}), ...(model ? { model } : {}) }
}

type Checked<T> = { success: true; data: T } | { success: false; error: { issues: Parameters<typeof issueWords>[0] } }

/** Told here already, in the words of the settings. */
function checked<T>(result: Checked<T>, source = ''): T {
  if (result.success) return result.data
  const problem = issueWords(result.error.issues, 'settings')[0] ?? 'the settings are not valid'
  throw usage(
    source === '' ? problem : `${source}: ${problem}`,
    `Settings: ${projectFields.join(', ')}; values are YAML, a list as in --set 'egress=[packages]'.`,
  )
}

function yamlValue(text: string, value: string): unknown {
  try {
    return load(value)
  } catch (cause) {
    throw usage(`--set ${text}: the value cannot be read as YAML: ${(cause as Error).message.split('\n', 1)[0]}`)
  }
}

function usage(message: string, hint?: string): CliError {
  return new CliError(message, { exitCode: 2, ...(hint ? { hint } : {}) })
}
