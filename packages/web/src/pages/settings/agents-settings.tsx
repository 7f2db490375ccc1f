import type { SecretInfo } from '@corral/protocol'
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Button, CopyLine, Loading, Problem } from '../../parts/basics.js'
import { Icon } from '../../parts/icons.js'
import { agents, loadAgents } from '../../state/agents.js'
import { api, session, wordsOf } from '../../state/api.js'
import { isLive } from '../../state/stream.js'
import { attempt, say } from '../../state/toasts.js'

export function AgentSettings(): JSX.Element {
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
