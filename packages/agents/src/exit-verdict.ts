import type { AgentExit, AgentVerdict } from './agent-adapter.js'

/** What an exit code alone says about a run. */
export function exitVerdict(who: string, exit: AgentExit): AgentVerdict {
  if (exit.exitCode === 0) return { ok: true }
  if (exit.signal !== undefined) {
    return { ok: false, cause: 'AgentKilled', message: `${who} was ended by signal ${exit.signal}` }
  }
  if (exit.exitCode === 127) {
    return { ok: false, cause: 'AgentFailed', message: `${who} ended with exit code 127: a program was not found` }
  }
  return { ok: false, cause: 'AgentFailed', message: `${who} ended with exit code ${exit.exitCode}` }
}
