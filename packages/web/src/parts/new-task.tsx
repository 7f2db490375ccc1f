import type { CreateTaskRequest } from '@corral/protocol'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { draftProblem, emptyDraft, isDraft, requestOf, type TaskDraft } from '../model/draft.js'
import { agents } from '../state/agents.js'
import { api, session, wordsOf } from '../state/api.js'
import { usePolled } from '../state/polled.js'
import { remembered } from '../state/preferences.js'
import { isLive, tasks } from '../state/stream.js'
import { say } from '../state/toasts.js'
import { Button, Key, Problem } from './basics.js'
import { Dialog } from './dialog.js'
import { isNewTaskOpen } from './overlays.js'

/** What was typed and not sent survives the page. */
const draft = remembered<TaskDraft>('draft', emptyDraft, isDraft)

export function NewTask(): JSX.Element {
  const [failure, setFailure] = useState<{ message: string; hint?: string | undefined }>()
  const [isBusy, setBusy] = useState(false)
  const { value: known } = usePolled((signal) => api.projects.list({ signal }), 'projects', 30_000)
  const { project, repo, task, agent, command, base, branch, limit, egress, setup, mode } = draft.value
  const set = (change: Partial<TaskDraft>): void => {
    draft.value = { ...draft.value, ...change }
  }
  const close = (): void => {
    isNewTaskOpen.value = false
  }
  const given = known?.projects.find(({ name }) => name === project)
  const defaultAgent = given?.agent?.name ?? session.value?.default_agent
  const chosen = agents.value.find(({ name }) => name === (agent || defaultAgent))
  // A project that names this agent has its command line too.
  const isCommand = chosen?.takes_command === true && !(agent === '' && given?.agent)
  const problem = draftProblem(draft.value, isCommand, given?.repo !== undefined)
  const create = async (): Promise<void> => {
    if (problem || isBusy) return
    setBusy(true)
    setFailure(undefined)
    try {
      const request: CreateTaskRequest = requestOf(draft.value, isCommand)
      const { id } = await api.create(request)
      draft.value = { ...emptyDraft, project, repo, agent, command, egress, setup }
      close()
      say('The task is created', { href: `/tasks/${encodeURIComponent(id)}` })
    } catch (error) {
      setFailure(wordsOf(error))
    } finally {
      setBusy(false)
    }
  }
  const names = agents.value.map(({ name }) => name)
  return (
    <Dialog label="New task" class="new-task-dialog" onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void create()
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey)) return
          event.preventDefault()
          void create()
        }}
      >
        <h2>New task</h2>
        {failure && <Problem {...failure} />}
        {(known?.projects.length ?? 0) > 0 && (
          <label class="field">
            <span>Project</span>
            <select value={project} onChange={(event) => set({ project: event.currentTarget.value })}>
              <option value="">none</option>
              {known?.projects.map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        )}
        <label class="field">
          <span>Repository</span>
          <input
            type="text"
            required={given?.repo === undefined}
            list="repositories"
            spellcheck={false}
            placeholder={
              given?.repo ?? (session.value?.local_repositories ? '/path/on/this/machine or https://…' : 'https://…')
            }
            value={repo}
            autofocus={repo === ''}
            onInput={(event) => set({ repo: event.currentTarget.value })}
          />
          <datalist id="repositories">
            {recentRepositories().map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </label>
        <label class="field">
          <span>What should be done</span>
          <textarea
            required
            rows={6}
            placeholder="Fix the failing test in cart.test.ts, and say why it failed"
            value={task}
            autofocus={repo !== ''}
            onInput={(event) => set({ task: event.currentTarget.value })}
          />
        </label>
        <div class="field-row">
          <label class="field">
            <span>Agent</span>
            <select value={agent} onChange={(event) => set({ agent: event.currentTarget.value })}>
              <option value="">
                {defaultAgent ?? 'default'} ({given?.agent ? 'of the project' : 'default'})
              </option>
              {names
                .filter((name) => name !== defaultAgent)
                .map((name) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
            </select>
          </label>
          <label class="field">
            <span>From branch</span>
            <input
              type="text"
              spellcheck={false}
              placeholder="its default"
              value={base}
              onInput={(event) => set({ base: event.currentTarget.value })}
            />
          </label>
          <label class="field">
            <span>New branch</span>
            <input
              type="text"
              spellcheck={false}
              placeholder="corral/task-…"
              value={branch}
              onInput={(event) => set({ branch: event.currentTarget.value })}
            />
          </label>
        </div>
        {chosen && !chosen.is_ready && <p class="agent-note">{chosen.problem}</p>}
        {isCommand && (
          <label class="field">
            <span>Command line</span>
            <input
              type="text"
              required
              spellcheck={false}
              class="mono"
              placeholder={'npm test -- --update && echo "$CORRAL_PROMPT" >> NOTES.md'}
              value={command}
              onInput={(event) => set({ command: event.currentTarget.value })}
            />
          </label>
        )}
        <label class="choice">
          <input
            type="checkbox"
            checked={mode === 'plan'}
            onChange={(event) => set({ mode: event.currentTarget.checked ? 'plan' : '' })}
          />
          Plan first: nothing is changed before you approve
        </label>
        <details class="more" open={Boolean(limit || egress || setup)}>
          <summary>Limits, network, set-up</summary>
          <div class="field-row">
            <label class="field">
              <span>Budget, in dollars</span>
              <input
                type="text"
                inputMode="decimal"
                placeholder="no limit"
                value={limit}
                onInput={(event) => set({ limit: event.currentTarget.value })}
              />
            </label>
            <label class="field grow">
              <span>Hosts it may reach</span>
              <input
                type="text"
                spellcheck={false}
                placeholder="packages.example.com:443, *.example.org:443"
                value={egress}
                onInput={(event) => set({ egress: event.currentTarget.value })}
              />
            </label>
          </div>
          <label class="field">
            <span>Set-up command</span>
            <input
              type="text"
              spellcheck={false}
              class="mono"
              placeholder="npm ci"
              value={setup}
              onInput={(event) => set({ setup: event.currentTarget.value })}
            />
          </label>
        </details>
        <div class="dialog-foot">
          <span class="soft">{isLive.value ? (problem ?? '') : 'Not connected: your words are kept here.'}</span>
          <span class="grow" />
          <Button onClick={close}>Cancel</Button>
          <button type="submit" class="button primary" disabled={Boolean(problem) || isBusy || !isLive.value}>
            <span>{isBusy ? 'Creating' : 'Create task'}</span>
            <Key keys="mod+enter" />
          </button>
        </div>
      </form>
    </Dialog>
  )
}

/** Repositories of earlier tasks, the latest first. */
function recentRepositories(): string[] {
  const newest = [...tasks.value.values()].sort((one, other) => other.created_at.localeCompare(one.created_at))
  return [...new Set(newest.map(({ repo }) => repo))].slice(0, 20)
}
