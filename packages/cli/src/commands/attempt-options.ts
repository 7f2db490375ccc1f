import { type AgentChoice, type CreateTaskRequest, taskLimits } from '@corral/protocol'
import { InvalidArgumentError } from 'commander'
import { CliError } from '../cli-error.js'

export function parseAttempts(text: string): number {
  const count = Number(text)
  if (!/^\d+$/.test(text) || count < 1 || count > taskLimits.attempts)
    throw new InvalidArgumentError(`Give a number from 1 to ${taskLimits.attempts}.`)
  return count
}

/** The attempts that agents and a number stand for; undefined for a single task. */
export function attemptsOf(
  agents: readonly (AgentChoice | undefined)[],
  count: number = agents.length,
): CreateTaskRequest['attempts'] | undefined {
  if (count < agents.length)
    throw new CliError(`--attempts ${count}: ${agents.length} agents are named`, {
      exitCode: 2,
      hint: 'Give as many attempts as agents, or more: they take turns.',
    })
  if (count > taskLimits.attempts)
    throw new CliError(`--agent: ${taskLimits.attempts} attempts are the most`, { exitCode: 2 })
  if (count < 2) return undefined
  return Array.from({ length: count }, (_, index) => {
    const agent = agents[index % agents.length]
    return agent ? { agent } : {}
  })
}
