import { askedEgress, type Check, environmentFilePath } from '@corral/protocol'
import type { AgentTask, AgentTaskSpec, AgentTaskStatus } from '@corral/resources'
import { TaskError } from '../task-error.js'
import { parseEnvironmentFile } from './environment-file.js'

/** What the file gives a task, as it is kept in its status. */
type TaskEnvironment = Pick<AgentTaskStatus, 'checks'> & { environment: NonNullable<AgentTaskStatus['environment']> }

/**
 * The environment a task gets from its repository's file: what it asks for, where nothing of it is missing a grant.
 * `granted` is what the operator allows this repository; what the task itself was allowed counts as well. Pure.
 */
export function taskEnvironment(
  { spec }: Pick<AgentTask, 'spec'>,
  file: { text: string; commit: string },
  granted: readonly string[],
): TaskEnvironment {
  const request = parseEnvironmentFile(file.text)
  const allowed = new Set([...granted, ...(spec.egress ?? [])].map((rule) => rule.toLowerCase()))
  // A grant for set-up alone is none for the agent.
  const allowedInSetup = new Set([...allowed, ...(spec.setupEgress ?? []).map((rule) => rule.toLowerCase())])
  const forAgent = new Set(askedEgress({ ...request, egress: { setup: [], agent: request.egress.agent } }))
  const missing = askedEgress(request).filter((rule) => !(forAgent.has(rule) ? allowed : allowedInSetup).has(rule))
  if (missing.length > 0)
    throw new TaskError(
      'EnvironmentNotGranted',
      `${environmentFilePath} asks for ${missing.join(', ')}, which was not granted to this repository`,
      {
        hint: `Read the file, then: corral env grant ${shellWord(spec.repository.url)} ${missing.map(shellWord).join(' ')}`,
      },
    )
  const { setup, env, path, checks, egress } = request
  return {
    environment: {
      commit: file.commit,
      ...(setup ? { setup } : {}),
      ...(Object.keys(env).length > 0 ? { env } : {}),
      ...(path.length > 0 ? { path } : {}),
      ...(egress.setup.length > 0 ? { setupEgress: egress.setup } : {}),
      ...(egress.agent.length > 0 ? { egress: egress.agent } : {}),
    },
    ...(checks.length > 0 ? { checks: { declared: checks.map(toSpec) } } : {}),
  }
}

function toSpec({ name, command, timeout_seconds }: Check): NonNullable<AgentTaskSpec['checks']>[number] {
  return { name, command, ...(timeout_seconds ? { timeoutSeconds: timeout_seconds } : {}) }
}

const shellWord = (text: string): string =>
  /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
