import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api, session } from '../state/api.js'
import { go } from '../state/location.js'
import { isLive } from '../state/stream.js'
import { attempt } from '../state/toasts.js'
import { Button, CopyLine } from './basics.js'
import { Icon } from './icons.js'
import { isNewTaskOpen } from './overlays.js'

/** An empty platform: a first task that needs nothing, and what a real one needs. */
export function FirstRun(): JSX.Element {
  const [isBusy, setBusy] = useState(false)
  const agent = session.value?.default_agent ?? 'claude'
  const runDemo = async (): Promise<void> => {
    setBusy(true)
    const created = await attempt(() => api.createDemo())
    setBusy(false)
    if (created) go({ page: 'task', id: created.id, tab: 'activity' })
  }
  return (
    <div class="first-run">
      <h2>Nothing runs yet</h2>
      <p class="first-lead">
        A task is a repository, a prompt and an agent. It runs in its own sandbox and ends as a branch you can review.
      </p>
      <ol>
        <li hidden={session.value?.local_repositories === false}>
          <span class="step-mark">
            <Icon name="box" />
          </span>
          <div>
            <h3>See one run</h3>
            <p>A demo task on a small repository of its own: a command line is the agent, so it needs no key.</p>
          </div>
          <Button kind="primary" onClick={() => void runDemo()} disabled={isBusy || !isLive.value}>
            {isBusy ? 'Starting' : 'Run the demo task'}
          </Button>
        </li>
        <li>
          <span class="step-mark">
            <Icon name="tool" />
          </span>
          <div>
            <h3>Bring an agent</h3>
            <p>Install one and give the platform its key. The key stays outside every sandbox.</p>
            <CopyLine text={`corral agent install ${agent}`} label="the command that installs the agent" />
          </div>
          <a class="button plain" href="/settings/agents">
            Agents and keys
          </a>
        </li>
        <li>
          <span class="step-mark">
            <Icon name="plus" />
          </span>
          <div>
            <h3>Give it work</h3>
            <p>Any git repository: a path on this machine, or an address you can fetch from.</p>
          </div>
          <Button
            keys="C"
            onClick={() => {
              isNewTaskOpen.value = true
            }}
          >
            New task
          </Button>
        </li>
      </ol>
    </div>
  )
}
