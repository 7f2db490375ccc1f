import type { JSX } from 'preact'
import { Button, CopyLine, Key } from '../parts/basics.js'
import { signOut } from '../state/api.js'
import { areNoticesOn, setNotices } from '../state/notices.js'
import { areKeysOn, theme } from '../state/preferences.js'
import { attempt, say } from '../state/toasts.js'
import { AgentSettings } from './settings/agents-settings.js'
import { LimitSettings } from './settings/limit-settings.js'
import { SandboxSettings } from './settings/sandbox-settings.js'

const sections = {
  sandboxes: 'Sandboxes',
  agents: 'Agents and keys',
  limits: 'Limits and budgets',
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
          {current === 'sandboxes' && <SandboxSettings />}
          {current === 'agents' && <AgentSettings />}
          {current === 'limits' && <LimitSettings />}
          {current === 'appearance' && <Appearance />}
          {current === 'access' && <Access />}
        </div>
      </div>
    </div>
  )
}

const noticeHint = 'Allow notifications for this address in the settings of the browser.'

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
        <span>
          Single keys do things; <Key keys="?" /> lists them
        </span>
      </label>
      <h2>Notices</h2>
      <label class="choice">
        <input
          type="checkbox"
          checked={areNoticesOn.value}
          onChange={(event) => {
            const box = event.currentTarget
            void setNotices(box.checked).then((isDone) => {
              box.checked = areNoticesOn.value
              if (!isDone) say('The browser does not allow notices of this page', { isError: true, hint: noticeHint })
            })
          }}
        />
        Tell me when a task needs me or has ended, while I look elsewhere
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
