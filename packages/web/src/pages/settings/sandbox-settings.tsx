import type { ConnectionCheck, KubeContextList, KubeNameList } from '@corral/protocol'
import type { JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { isChanged, needsRestart, patchOf, runtimeTitle, type SettingsDraft } from '../../model/settings-draft.js'
import { Button, CopyLine, Loading, Problem } from '../../parts/basics.js'
import { api, wordsOf } from '../../state/api.js'
import { useKeys } from '../../state/keys.js'
import { isLive } from '../../state/stream.js'
import { CheckList, testWords } from './check-list.js'
import { useSettings } from './use-settings.js'

const providers = [
  { name: 'embedded', title: 'This machine', text: 'Embedded Kubernetes API, isolated processes. Nothing to install.' },
  {
    name: 'kubernetes',
    title: 'Kubernetes (Agent Sandbox)',
    text: 'Pods in a cluster through Sandbox, SandboxClaim and SandboxWarmPool.',
  },
] as const

/** Where sandboxes run, and whether that would work: the test looks at what is chosen here, saved or not. */
export function SandboxSettings(): JSX.Element {
  const { view, draft, failure, isConflict, load, save, set } = useSettings()
  const test = useTest(draft)
  useKeys([{ keys: 't', title: 'Test the connection', run: () => void test.run() }])
  if (failure !== undefined) return <Problem {...wordsOf(failure)} onRetry={() => void load()} />
  if (!view || !draft) return <Loading />
  const checked = patchOf(draft)
  const problems = 'problems' in checked ? checked.problems : {}
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void save()
      }}
    >
      <h2 id="provider-title">Where sandboxes run</h2>
      <fieldset class="provider-cards" aria-labelledby="provider-title">
        {providers.map(({ name, title, text }) => (
          <label key={name} class={`provider-card ${draft.provider === name ? 'is-chosen' : ''}`}>
            <input
              type="radio"
              name="provider"
              class="hidden"
              value={name}
              checked={draft.provider === name}
              disabled={!view.can_choose_provider}
              onChange={() => set({ provider: name })}
            />
            <b>
              {title}
              {view.active.provider === name && <span class="chip">in use</span>}
            </b>
            <span class="soft">{text}</span>
          </label>
        ))}
      </fieldset>
      {!view.can_choose_provider && (
        <p class="soft">This server was given its cluster when it was started; the rest can be chosen here.</p>
      )}
      <ClusterFields draft={draft} set={set} problems={problems} isGiven={!view.can_choose_provider} />
      <p class="test-line">
        <Button kind="primary" keys="T" disabled={test.isBusy || !isLive.value} onClick={() => void test.run()}>
          {test.isBusy ? 'Testing' : 'Test connection'}
        </Button>
        <span class="soft" role="status">
          {testWords(test.results, test.isBusy) ||
            'Looks with what is chosen above, saved or not; claims a sandbox, runs a command in it and gives it back.'}
        </span>
      </p>
      {test.failure !== undefined && <Problem {...wordsOf(test.failure)} onRetry={() => void test.run()} />}
      {(test.results.length > 0 || test.isBusy) && <CheckList results={test.results} isBusy={test.isBusy} />}
      <p class="test-line">
        <Button type="submit" disabled={!isChanged(draft, view) || 'problems' in checked || !isLive.value}>
          Save
        </Button>
        {isConflict ? (
          <>
            <span role="alert">The settings were changed elsewhere since you opened them.</span>
            <Button onClick={() => void load()}>Show them as they are now</Button>
          </>
        ) : (
          <span class="soft">
            {isChanged(draft, view) ? 'Not saved yet' : 'Saved'} · running tasks stay where they are.
          </span>
        )}
      </p>
      {needsRestart(view) && (
        <div class="note" role="status">
          <p>
            Sandboxes still run on {view.active.provider === 'embedded' ? 'this machine' : 'the former cluster'}. The
            next start of the platform uses what is saved:
          </p>
          <CopyLine text="corral down && corral up -d" label="the commands that start it again" />
        </div>
      )}
    </form>
  )
}

function ClusterFields(props: {
  draft: SettingsDraft
  set: (change: Partial<SettingsDraft>) => void
  problems: Partial<Record<keyof SettingsDraft, string>>
  isGiven: boolean
}): JSX.Element {
  const { draft, set, problems } = props
  const isCluster = draft.provider === 'kubernetes' && !props.isGiven
  const contexts = useAnswer<KubeContextList>(isCluster ? 'contexts' : undefined, (signal) =>
    api.settings.contexts({ signal }),
  )
  const context = isCluster ? draft.context : ''
  const current = contexts?.contexts.find(({ is_current }) => is_current)?.name
  const query = context ? { context } : {}
  const isKnown = !isCluster || contexts !== undefined
  const namespaces = useAnswer<KubeNameList>(isCluster && isKnown ? `namespaces ${context}` : undefined, (signal) =>
    api.settings.namespaces(query, { signal }),
  )
  const classes = useAnswer<KubeNameList>(isKnown ? `classes ${draft.provider} ${context}` : undefined, (signal) =>
    api.settings.runtimeClasses(query, { signal }),
  )
  return (
    <div class="field-grid">
      {isCluster && (
        <div class="field">
          <label htmlFor="setting-context">Context</label>
          {contexts === undefined || contexts.contexts.length > 0 ? (
            <select
              id="setting-context"
              value={draft.context}
              onChange={(event) => set({ context: event.currentTarget.value })}
            >
              <option value="">Current{current ? ` (${current})` : ''}</option>
              {contextNames(contexts, draft.context).map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          ) : (
            <input
              id="setting-context"
              value={draft.context}
              onInput={(event) => set({ context: event.currentTarget.value })}
            />
          )}
          {contexts?.problem && <small>{contexts.problem}</small>}
        </div>
      )}
      {isCluster && (
        <NameField
          title="Namespace"
          value={draft.namespace}
          empty="the context’s"
          answer={namespaces}
          problem={problems.namespace}
          onChange={(namespace) => set({ namespace })}
        />
      )}
      <NameField
        title="Runtime class"
        value={draft.runtimeClass}
        empty="the default of the nodes"
        answer={classes}
        problem={problems.runtimeClass}
        onChange={(runtimeClass) => set({ runtimeClass })}
      />
    </div>
  )
}

/** With the chosen one, which would else be blank until they are listed, and where the kubeconfig has lost it. */
function contextNames(listed: KubeContextList | undefined, chosen: string): string[] {
  const names = (listed?.contexts ?? []).map(({ name }) => name)
  return chosen === '' || names.includes(chosen) ? names : [chosen, ...names]
}

/** A name of the cluster: chosen from what it lists, typed where it lists nothing. */
function NameField(props: {
  title: string
  value: string
  empty: string
  answer: KubeNameList | undefined
  problem: string | undefined
  onChange: (value: string) => void
}): JSX.Element {
  const { value, answer } = props
  const id = useId()
  const [isTyped, setTyped] = useState(false)
  const names = answer?.names ?? []
  const all =
    value !== '' && !names.includes(value) && (answer === undefined || names.length > 0) ? [value, ...names] : names
  return (
    <div class="field">
      <label htmlFor={id}>{props.title}</label>
      {!isTyped && (answer === undefined || all.length > 0) ? (
        <select id={id} value={value} onChange={(event) => props.onChange(event.currentTarget.value)}>
          <option value="">{props.empty}</option>
          {all.map((name) => (
            <option key={name} value={name}>
              {props.title === 'Runtime class' ? runtimeTitle(name) : name}
            </option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          value={value}
          placeholder={props.empty}
          aria-invalid={props.problem !== undefined}
          onInput={(event) => props.onChange(event.currentTarget.value)}
        />
      )}
      {names.length > 0 && (
        <button
          type="button"
          class="text-button"
          aria-label={
            isTyped ? `Choose from the list: ${props.title.toLowerCase()}` : `Type another ${props.title.toLowerCase()}`
          }
          onClick={() => setTyped(!isTyped)}
        >
          {isTyped ? 'Choose from the list' : 'Type another'}
        </button>
      )}
      {props.problem && <small class="field-problem">{props.problem}</small>}
      {answer?.problem && <small title={answer.problem}>Cannot be listed; type it. {answer.problem}</small>}
    </div>
  )
}

/** What a call answers for a key; asked anew with every other key, and nothing without one. The last answer stays meanwhile. */
function useAnswer<T>(key: string | undefined, call: (signal: AbortSignal) => Promise<T>): T | undefined {
  const [answer, setAnswer] = useState<T>()
  useEffect(() => {
    if (key === undefined) return
    const abort = new AbortController()
    call(abort.signal).then(
      (value) => setAnswer(value),
      () => undefined, // the field takes typed text meanwhile
    )
    return () => abort.abort()
  }, [key])
  return key === undefined ? undefined : answer
}

function useTest(draft: SettingsDraft | undefined) {
  const [results, setResults] = useState<readonly ConnectionCheck[]>([])
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<unknown>()
  const running = useRef<AbortController>()
  const run = async (): Promise<void> => {
    const checked = draft && patchOf(draft)
    if (!checked || !('patch' in checked)) return
    running.current?.abort()
    const abort = new AbortController()
    running.current = abort
    setResults([])
    setFailure(undefined)
    setBusy(true)
    try {
      for await (const result of api.testConnection({ signal: abort.signal, settings: checked.patch }))
        if (!abort.signal.aborted) setResults((old) => [...old, result])
    } catch (error) {
      if (!abort.signal.aborted) setFailure(error)
    } finally {
      if (!abort.signal.aborted) setBusy(false)
    }
  }
  useEffect(() => () => running.current?.abort(), [])
  return { results, isBusy, failure, run }
}
