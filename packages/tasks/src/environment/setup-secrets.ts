import type { AgentTask } from '@corral/resources'
import { TaskError } from '../task-error.js'

/** What stands in events and messages for the value of a secret. */
const hidden = '***'
/** Shorter ones would hide half of every log, and are no secrets. */
const shortestHidden = 4

/** The secrets set-up is given, and how they are kept out of everything that is kept. */
export interface SetupSecrets {
  readonly env: Readonly<Record<string, string>>
  /** The text without any of their values. */
  redact(text: string): string
}

export async function setupSecrets(
  task: Pick<AgentTask, 'status'>,
  find: (name: string) => Promise<string | undefined>,
): Promise<SetupSecrets> {
  const env: Record<string, string> = {}
  for (const { name, env: variable } of task.status?.environment?.secrets ?? []) {
    const value = await find(name)
    if (value === undefined)
      throw new TaskError('SecretMissing', `the secret "${name}" was granted to this repository and is not set`, {
        hint: `Set it with \`corral secret set ${name}\`, then retry.`,
      })
    env[variable] = value
  }
  // Lines of a key come one by one; what tools print as base64 is the same secret.
  const values = Object.values(env)
    .flatMap((value) => [value, ...value.split('\n'), Buffer.from(value).toString('base64'), encodeURIComponent(value)])
    .map((value) => value.trim())
    .filter((value) => value.length >= shortestHidden)
    .sort((a, b) => b.length - a.length)
  return {
    env,
    redact: (text) => values.reduce((redacted, value) => redacted.replaceAll(value, hidden), text),
  }
}
