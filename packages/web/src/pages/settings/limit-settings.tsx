import type { JSX } from 'preact'
import { isChanged, patchOf, type SettingsDraft } from '../../model/settings-draft.js'
import { Button, Loading, Problem } from '../../parts/basics.js'
import { wordsOf } from '../../state/api.js'
import { isLive } from '../../state/stream.js'
import { useSettings } from './use-settings.js'

const fields: readonly { name: 'timeoutMinutes' | 'maxCost' | 'maxTokens'; title: string; empty: string }[] = [
  { name: 'timeoutMinutes', title: 'Time of a task, in minutes', empty: 'what the platform gives' },
  { name: 'maxCost', title: 'Budget of a task, in US dollars', empty: 'none' },
  { name: 'maxTokens', title: 'Tokens of a task', empty: 'none' },
]

/** What tasks get that say nothing else. */
export function LimitSettings(): JSX.Element {
  const { view, draft, failure, isConflict, load, save, set } = useSettings()
  if (failure !== undefined) return <Problem {...wordsOf(failure)} onRetry={() => void load()} />
  if (!view || !draft) return <Loading />
  const checked = patchOf(draft)
  const problems: Partial<Record<keyof SettingsDraft, string>> = 'problems' in checked ? checked.problems : {}
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void save()
      }}
    >
      <h2>Limits of a task</h2>
      <p class="soft">
        For tasks that name none themselves. The budget is looked at before every call of a model; over it the agent is
        ended and its work kept.
      </p>
      <div class="field-grid">
        {fields.map(({ name, title, empty }) => (
          <label key={name} class="field">
            <span>{title}</span>
            <input
              inputMode="decimal"
              value={draft[name]}
              placeholder={empty}
              aria-invalid={problems[name] !== undefined}
              onInput={(event) => set({ [name]: event.currentTarget.value })}
            />
            {problems[name] && <small class="field-problem">{problems[name]}</small>}
          </label>
        ))}
      </div>
      <p class="test-line">
        <Button
          kind="primary"
          type="submit"
          disabled={!isChanged(draft, view) || 'problems' in checked || !isLive.value}
        >
          Save
        </Button>
        {isConflict ? (
          <>
            <span role="alert">The settings were changed elsewhere since you opened them.</span>
            <Button onClick={() => void load()}>Show them as they are now</Button>
          </>
        ) : (
          <span class="soft">{isChanged(draft, view) ? 'Not saved yet' : 'Saved'} · holds for the next task.</span>
        )}
      </p>
    </form>
  )
}
