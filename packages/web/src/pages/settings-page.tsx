import type { ConnectionCheck, SecretInfo } from '@corral/protocol'
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Button, CopyLine, Key, Loading, Problem } from '../parts/basics.js'
import { Icon } from '../parts/icons.js'
import { agents, loadAgents } from '../state/agents.js'
import { api, session, signOut, wordsOf } from '../state/api.js'
import { useKeys } from '../state/keys.js'
import { areKeysOn, theme } from '../state/preferences.js'
import { isLive } from '../state/stream.js'
import { attempt, say } from '../state/toasts.js'

const sections = {
  sandboxes: 'Connection',
  agents: 'Agents and keys',
  appearance: 'Appearance',
  access: 'Access',
} as const

export function SettingsPage({ section }: { section: string }): JSX.Element {
  const current = section in sections ? (section as keyof typeof sections) : 'sandboxes'
  return (
    <div class="page">
      <div class="bar">
        <h1>Settings</h1>
      </div>
      <div class="settings">
        <nav aria-label="Settings">
          <ul>
            {Object.entries(sections).map(([name, title]) => (
              <li key={name}>
                <a
                  href={name === 'sandboxes' ? '/settings' : `/settings/${name}`}
                  aria-current={current === name ? 'page' : undefined}
                >
                  {title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="settings-body">
          {current === 'sandboxes' && <Connection />}
          {current === 'agents' && <Agents />}
          {current === 'appearance' && <Appearance />}
          {current === 'access' && <Access />}
        </div>
      </div>
    </div>
  )
}

/** Looks at everything the platform needs of its cluster; each check stands alone. */
function Connection(): JSX.Element {
  const [results, setResults] = useState<readonly ConnectionCheck[]>([])
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<unknown>()
  const running = useRef<AbortController>()
  const test = async (): Promise<void> => {
    running.current?.abort()
    const abort = new AbortController()
    running.current = abort
    setResults([])
    setFailure(undefined)
    setBusy(true)
    try {
      for await (const result of api.testConnection({ signal: abort.signal })) setResults((old) => [...old, result])
    } catch (error) {
      if (!abort.signal.aborted) setFailure(error)
    } finally {
      if (!abort.signal.aborted) setBusy(false)
    }
  }
  useEffect(() => () => running.current?.abort(), [])
  useKeys([{ keys: 't', title: 'Test the connection', run: () => void test() }])
  const passed = results.filter(({ state }) => state === 'ok').length
  return (
    <section>
      <h2>Connection to the cluster</h2>
      <p class="soft">
        Sandboxes are pods that a Kubernetes API manages through Sandbox, SandboxClaim and SandboxWarmPool. On one
        machine Corral brings that API itself. The test claims a sandbox, runs a command in it and gives it back.
      </p>
      <p class="test-line">
        <Button kind="primary" keys="T" disabled={isBusy || !isLive.value} onClick={() => void test()}>
          {isBusy ? 'Testing' : 'Test connection'}
        </Button>
        <span class="soft" role="status">
          {results.length > 0 && `${passed} of ${results.length} passed`}
          {results.length > passed && !isBusy && ` · ${results.length - passed} need attention`}
        </span>
      </p>
      {failure !== undefined && <Problem {...wordsOf(failure)} onRetry={() => void test()} />}
      {(results.length > 0 || isBusy) && (
        <ul class="checks">
          {results.map((result) => (
            <li key={result.check} class={`check is-${result.state}`}>
              <span
                class={`state state-${{ ok: 'good', warn: 'attention', fail: 'bad' }[result.state]}`}
                role="img"
                aria-label={{ ok: 'passed', warn: 'needs attention', fail: 'failed' }[result.state]}
              >
                <Icon name={result.state === 'ok' ? 'check' : result.state === 'warn' ? 'alert' : 'close'} size={10} />
              </span>
              <b>{result.title}</b>
              <span class="check-detail">{result.detail}</span>
              {result.remedy && <span class="check-remedy">{result.remedy}</span>}
            </li>
          ))}
          {isBusy && (
            <li class="check">
              <span class="spinner" aria-hidden="true" />
              <span class="soft">Looking</span>
            </li>
          )}
        </ul>
      )}
    </section>
  )
}

function Agents(): JSX.Element {
  const [secrets, setSecrets] = useState<readonly SecretInfo[]>()
  const [failure, setFailure] = useState<unknown>()
  const load = async (): Promise<void> => {
    try {
      const [found] = await Promise.all([api.secrets(), loadAgents()])
      setSecrets(found.secrets)
      setFailure(undefined)
    } catch (error) {
      setFailure(error)
    }
  }
  useEffect(() => void load(), [])
  if (failure !== undefined) return <Problem {...wordsOf(failure)} onRetry={() => void load()} />
  if (!secrets) return <Loading />
  return (
    <section>
      <h2>Agents</h2>
      <ul class="agents">
        {agents.value.map((agent) => (
          <li key={agent.name}>
            <span
              class={`state state-${agent.is_ready ? 'good' : 'waiting'}`}
              role="img"
              aria-label={agent.is_ready ? 'ready' : 'not ready'}
            >
              {agent.is_ready && <Icon name="check" size={10} />}
            </span>
            <div>
              <h3>
                {agent.title} <span class="soft">{agent.version}</span>
                {agent.name === session.value?.default_agent && <span class="chip">default</span>}
              </h3>
              <p class="soft">{agent.summary}</p>
              {agent.install && <CopyLine text={agent.install} label={`the command that installs ${agent.title}`} />}
              {!agent.install && agent.needs_secret && (
                <p class="agent-note">Needs the key {agent.needs_secret}, below.</p>
              )}
            </div>
          </li>
        ))}
      </ul>
      <h2>Keys</h2>
      <p class="soft">
        A key is written here and never shown again. Only the model broker of the platform reads it; sandboxes get a
        token that names one task.
      </p>
      <ul class="secrets">
        {secrets.map((secret) => (
          <Secret key={secret.name} secret={secret} onChanged={() => void load()} />
        ))}
      </ul>
    </section>
  )
}

function Secret({ secret, onChanged }: { secret: SecretInfo; onChanged: () => void }): JSX.Element {
  const [value, setValue] = useState('')
  const save = async (): Promise<void> => {
    const done = await attempt(async () => {
      await api.setSecret(secret.name, value)
      return true
    })
    if (!done) return
    setValue('')
    say(`${secret.name} is kept`)
    onChanged()
  }
  const remove = async (): Promise<void> => {
    if (!window.confirm(`Forget ${secret.name}? Tasks that need it cannot start without it.`)) return
    await attempt(() => api.removeSecret(secret.name))
    onChanged()
  }
  return (
    <li class="secret">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void save()
        }}
      >
        <label class="field">
          <span>
            {secret.title ?? secret.name} <code class="soft">{secret.name}</code>
          </span>
          <input
            type="password"
            autocomplete="off"
            placeholder={secret.is_set ? 'set; a new value replaces it' : 'not set'}
            value={value}
            onInput={(event) => setValue(event.currentTarget.value)}
          />
        </label>
        <Button type="submit" disabled={value.trim() === '' || !isLive.value}>
          {secret.is_set ? 'Replace' : 'Save'}
        </Button>
        {secret.is_set && (
          <Button kind="danger" icon="trash" aria-label={`Forget ${secret.name}`} onClick={() => void remove()} />
        )}
      </form>
    </li>
  )
}

function Appearance(): JSX.Element {
  return (
    <section>
      <h2>Appearance</h2>
      <fieldset class="choices">
        <legend>Theme</legend>
        {(['system', 'light', 'dark'] as const).map((name) => (
          <label key={name}>
            <input type="radio" name="theme" checked={theme.value === name} onChange={() => (theme.value = name)} />
            {{ system: 'As the system', light: 'Light', dark: 'Dark' }[name]}
          </label>
        ))}
      </fieldset>
      <h2>Keyboard</h2>
      <label class="choice">
        <input
          type="checkbox"
          checked={areKeysOn.value}
          onChange={(event) => (areKeysOn.value = event.currentTarget.checked)}
        />
        Single keys do things (all of them: <Key keys="?" />)
      </label>
    </section>
  )
}

function Access(): JSX.Element {
  return (
    <section>
      <h2>Access</h2>
      <p class="soft">This browser is signed in by a cookie that ends after twelve idle hours. For another browser:</p>
      <CopyLine text="corral open --print" label="the command that prints a link" />
      <p class="soft">Programs send the platform’s token. Every route is described in the OpenAPI document.</p>
      <p>
        <a href="/openapi.json" target="_blank" rel="noreferrer">
          openapi.json
        </a>
      </p>
      <Button onClick={() => void attempt(signOut)}>Sign out</Button>
    </section>
  )
}
