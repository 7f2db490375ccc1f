import type { CreateTaskRequest } from '@corral/protocol'

/** A task as it is typed: every field is text. */
export interface TaskDraft {
  /** The name of a project; empty for none. */
  readonly project: string
  readonly repo: string
  readonly task: string
  readonly agent: string
  readonly command: string
  readonly base: string
  readonly branch: string
  readonly limit: string
  readonly egress: string
  readonly setup: string
  /** `plan`: it plans first. */
  readonly mode: string
}

export const emptyDraft: TaskDraft = {
  project: '',
  repo: '',
  task: '',
  agent: '',
  command: '',
  base: '',
  branch: '',
  limit: '',
  egress: '',
  setup: '',
  mode: '',
}

export function isDraft(value: unknown): value is TaskDraft {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.keys(emptyDraft).every((name) => typeof (value as Record<string, unknown>)[name] === 'string')
  )
}

/** What is missing or wrong, in words; undefined when it can be sent. The server has the last word. */
/** `hasRepository`: the project names one. */
export function draftProblem(draft: TaskDraft, takesCommand: boolean, hasRepository = false): string | undefined {
  if (draft.repo.trim() === '' && !hasRepository) return 'Name a repository.'
  if (draft.task.trim() === '') return 'Say what should be done.'
  if (takesCommand && draft.command.trim() === '') return 'Give the command line.'
  if (draft.limit.trim() !== '' && !(Number(draft.limit) > 0)) return 'The budget is an amount such as 2.50.'
  return undefined
}

/** `takesCommand`: the agent runs the command line that was typed. */
export function requestOf(draft: TaskDraft, takesCommand: boolean): CreateTaskRequest {
  const given = <T>(text: string, make: (text: string) => T): T | undefined =>
    text.trim() === '' ? undefined : make(text.trim())
  const agent = given(draft.agent, (name) => (takesCommand ? { name, command: draft.command } : name))
  const optional = {
    project: given(draft.project, (name) => name),
    repo: given(draft.repo, (name) => name),
    agent,
    base_branch: given(draft.base, (name) => name),
    new_branch: given(draft.branch, (name) => name),
    limits: given(draft.limit, (text) => ({ max_cost_usd: Number(text) })),
    egress: given(draft.egress, (text) => text.split(/[\s,]+/).filter(Boolean)),
    setup: given(draft.setup, (text) => text),
    mode: draft.mode === 'plan' ? draft.mode : undefined,
  }
  const present = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined))
  return { task: draft.task, ...present }
}
