import type { CheckRound, TaskEvent, TaskView } from '@corral/protocol'
import { pc } from './colors.js'
import { terminalText } from './terminal-text.js'

/** A check, or a round of them, as lines for a person. What a check wrote was told before, as it came. */
export function describeCheck(event: Extract<TaskEvent, { type: 'check' | 'check_round' }>): string | undefined {
  if (event.type === 'check_round')
    return event.message === undefined
      ? undefined
      : `${pc.cyan('↻')} ${pc.bold('back to the agent')}${pc.dim(`  checks failed in round ${event.round}`)}`
  const seconds = pc.dim(` in ${(event.duration_ms / 1000).toFixed(1)} s`)
  const name = terminalText(event.name)
  if (event.outcome === 'passed') return `${pc.green('✓')} ${pc.bold(`check ${name}`)}${seconds}`
  const how = event.outcome === 'timed_out' ? 'no end in its time' : `exit code ${event.exit_code}`
  return `${pc.red('✗')} ${pc.bold(`check ${name}`)}  ${how}${seconds}`
}

/** `lint ✓ test ✗ (round 2 of 3)`, the last round of a task; undefined for one without checks. */
export function checkWords({ checks }: Pick<TaskView, 'checks'>): string | undefined {
  const last = checks?.rounds.at(-1)
  if (!checks) return undefined
  if (!last) return 'not run'
  const rounds = checks.rounds.length > 1 ? ` (round ${last.round})` : ''
  return `${resultWords(last)}${rounds}`
}

const resultWords = (round: CheckRound): string =>
  round.results.map(({ name, outcome }) => `${terminalText(name)} ${outcome === 'passed' ? '✓' : '✗'}`).join(' ')
