import type { CreateProjectRequest, ProjectView, ReplaceProjectRequest } from '@corral/protocol'

/** A project as it is typed: every field is text. */
export interface ProjectDraft {
  readonly name: string
  readonly description: string
  readonly repo: string
  readonly base: string
  readonly agent: string
  readonly command: string
  readonly model: string
  readonly instructions: string
  readonly author: string
  readonly setup: string
  /** One check a line: `name: command`. */
  readonly checks: string
  readonly egress: string
}

export const emptyProject: ProjectDraft = {
  name: '',
  description: '',
  repo: '',
  base: '',
  agent: '',
  command: '',
  model: '',
  instructions: '',
  author: '',
  setup: '',
  checks: '',
  egress: '',
}

export function draftOf(project: ProjectView): ProjectDraft {
  const { author } = project
  return {
    name: project.name,
    description: project.description ?? '',
    repo: project.repo ?? '',
    base: project.base_branch ?? '',
    agent: project.agent?.name ?? '',
    command: project.agent?.command ?? '',
    model: project.agent?.model ?? '',
    instructions: project.instructions ?? '',
    author: author ? `${author.name} <${author.email}>` : '',
    setup: project.setup ?? '',
    checks: (project.checks ?? []).map(({ name, command }) => `${name}: ${command}`).join('\n'),
    egress: (project.egress ?? []).join(', '),
  }
}

const identity = /^([^<>]+?)\s*<([^<>\s]+)>$/
const check = /^([^:\s][^:]*?)\s*:\s*(\S.*)$/

/** What is missing or wrong, in words; undefined when it can be sent. The server has the last word. */
export function projectProblem(draft: ProjectDraft): string | undefined {
  if (!/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(draft.name)) return 'A name has small letters, digits and hyphens.'
  if (draft.author.trim() && !identity.test(draft.author.trim())) return 'An author is written as Name <address>.'
  const wrong = lines(draft.checks).find((line) => !check.test(line))
  if (wrong !== undefined) return `A check is written as name: command, not “${wrong}”.`
  return undefined
}

/**
 * The project as it was, with what the form shows in it: settings the form has no field for stay. An empty field takes its
 * setting away.
 */
export function settingsOf(draft: ProjectDraft, before?: ProjectView): ReplaceProjectRequest {
  const { name: _name, created_at: _created, ...kept } = before ?? ({} as Partial<ProjectView>)
  const text = (value: string): string | undefined => value.trim() || undefined
  const [, person, email] = identity.exec(draft.author.trim()) ?? []
  const agent = text(draft.agent)
  const sameAgent = before?.agent?.name === agent ? before?.agent : undefined
  const options = { command: text(draft.command), model: text(draft.model) }
  const known = new Map((before?.checks ?? []).map((each) => [each.name, each]))
  const checks = lines(draft.checks).map((line) => {
    const [, name = '', command = ''] = check.exec(line) ?? []
    return { ...known.get(name), name, command }
  })
  const shown = {
    description: text(draft.description),
    repo: text(draft.repo),
    base_branch: text(draft.base),
    agent: agent === undefined ? undefined : present({ ...sameAgent, name: agent, ...options }),
    instructions: text(draft.instructions),
    author: person && email ? { name: person, email } : undefined,
    setup: text(draft.setup),
    checks: checks.length > 0 ? checks : undefined,
    egress: draft.egress.trim() ? draft.egress.split(/[\s,]+/).filter(Boolean) : undefined,
  }
  return present({ ...kept, ...shown }) as ReplaceProjectRequest
}

export function newProjectOf(draft: ProjectDraft): CreateProjectRequest {
  const { resource_version: _version, ...settings } = settingsOf(draft)
  return { name: draft.name, ...settings } as CreateProjectRequest
}

const lines = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)

const present = <T extends object>(fields: T): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T
