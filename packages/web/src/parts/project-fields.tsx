import type { JSX } from 'preact'
import type { ProjectDraft } from '../model/project-draft.js'
import { agents } from '../state/agents.js'
import { session } from '../state/api.js'

/** The fields of a project. Everything but its name may stay empty. */
export function ProjectFields(props: {
  draft: ProjectDraft
  isNew: boolean
  onChange: (change: Partial<ProjectDraft>) => void
}): JSX.Element {
  const { draft, isNew, onChange } = props
  const takesCommand = agents.value.find(({ name }) => name === draft.agent)?.takes_command === true
  const line = (field: keyof ProjectDraft, label: string, placeholder: string, isMono = false): JSX.Element => (
    <label class="field grow">
      <span>{label}</span>
      <input
        type="text"
        spellcheck={false}
        class={isMono ? 'mono' : ''}
        placeholder={placeholder}
        value={draft[field]}
        onInput={(event) => onChange({ [field]: event.currentTarget.value })}
      />
    </label>
  )
  const text = (field: keyof ProjectDraft, label: string, placeholder: string, rows: number): JSX.Element => (
    <label class="field">
      <span>{label}</span>
      <textarea
        rows={rows}
        placeholder={placeholder}
        value={draft[field]}
        onInput={(event) => onChange({ [field]: event.currentTarget.value })}
      />
    </label>
  )
  return (
    <>
      {isNew && line('name', 'Name', 'shop')}
      {line('description', 'Description', 'what it is for')}
      <div class="field-row">
        {line(
          'repo',
          'Repository',
          session.value?.local_repositories ? '/path/on/this/machine or https://…' : 'https://…',
        )}
        {line('base', 'From branch', 'its default')}
      </div>
      <div class="field-row">
        <label class="field">
          <span>Agent</span>
          <select value={draft.agent} onChange={(event) => onChange({ agent: event.currentTarget.value })}>
            <option value="">the platform’s default</option>
            {agents.value.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {takesCommand ? line('command', 'Command line', 'make fix', true) : line('model', 'Model', 'the agent’s own')}
        {line('author', 'Author of commits', 'Ada Lovelace <ada@example.org>')}
      </div>
      {text(
        'instructions',
        'Instructions, said to the agent before every task',
        'Keep functions short. Never edit generated files.',
        4,
      )}
      {text('checks', 'Checks, one a line', 'test: npm test\nlint: npm run lint', 3)}
      <div class="field-row">
        {line('setup', 'Set-up command', 'npm ci', true)}
        {line('egress', 'Hosts it may reach', 'packages.example.com:443')}
      </div>
    </>
  )
}
