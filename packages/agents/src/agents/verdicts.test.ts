import { describe, expect, it } from 'vitest'
import type { AgentExit } from '../agent-adapter.js'
import { play } from './play-lines.test-suite.js'

const failed = (cause: string, message: string) => ({ ok: false, cause, message })

describe('a run that ended', () => {
  const claudeError = (more: object) => ({ type: 'result', is_error: true, ...more })
  const codexFailed = (message: string) => ({ type: 'turn.failed', error: { message } })
  const geminiError = (message: string) => ({ type: 'result', status: 'error', error: { message } })
  const opencodeError = (data: object) => ({ type: 'error', error: { name: 'APIError', data } })
  it.each<{ agent: string; how: string; lines: object[]; exit?: AgentExit; verdict: object }>([
    ...[
      { status: 400, cause: 'ModelRefused' },
      { status: 429, cause: 'ModelUnavailable' },
      { status: 499, cause: 'ModelRefused' },
      { status: 500, cause: 'ModelUnavailable' },
    ].flatMap(({ status, cause }) => [
      {
        agent: 'claude',
        how: `with ${status} of the model`,
        lines: [claudeError({ api_error_status: status, result: 'why' })],
        verdict: failed(cause, 'why'),
      },
      {
        agent: 'codex',
        how: `with ${status} of the model`,
        lines: [codexFailed(`unexpected status ${status} Oh`)],
        exit: { exitCode: 1 },
        verdict: failed(cause, `unexpected status ${status} Oh`),
      },
      {
        agent: 'gemini',
        how: `with ${status} of the model`,
        lines: [geminiError(`{"code": ${status}}`)],
        exit: { exitCode: 1 },
        verdict: failed(cause, `{"code": ${status}}`),
      },
      {
        agent: 'opencode',
        how: `with ${status} of the model`,
        lines: [opencodeError({ message: 'why', statusCode: status })],
        exit: { exitCode: 1 },
        verdict: failed(cause, 'why'),
      },
    ]),
    {
      agent: 'claude',
      how: 'with errors in a list',
      lines: [claudeError({ errors: ['one', 'two'] })],
      verdict: failed('AgentFailed', 'one; two'),
    },
    {
      agent: 'claude',
      how: 'with an error that says nothing',
      lines: [claudeError({})],
      verdict: failed('AgentFailed', 'Claude Code ended with an error'),
    },
    {
      agent: 'claude',
      how: 'without a result',
      lines: [],
      verdict: failed('AgentFailed', 'Claude Code ended without a result'),
    },
    {
      agent: 'claude',
      how: 'without a program',
      lines: [],
      exit: { exitCode: 127 },
      verdict: failed('AgentNotInstalled', 'Claude Code is not installed in the sandbox'),
    },
    {
      agent: 'claude',
      how: 'with a result and exit code 127',
      lines: [{ type: 'result', is_error: false }],
      exit: { exitCode: 127 },
      verdict: failed('AgentFailed', 'Claude Code ended with exit code 127: a program was not found'),
    },
    {
      agent: 'claude',
      how: 'by a signal',
      lines: [],
      exit: { exitCode: 143, signal: 15 },
      verdict: failed('AgentKilled', 'Claude Code was ended by signal 15'),
    },
    {
      agent: 'codex',
      how: 'without a turn',
      lines: [],
      verdict: failed('AgentFailed', 'Codex ended without completing its turn'),
    },
    {
      agent: 'codex',
      how: 'without a program',
      lines: [],
      exit: { exitCode: 127 },
      verdict: failed('AgentNotInstalled', 'Codex is not installed in the sandbox'),
    },
    {
      agent: 'codex',
      how: 'with a turn and exit code 127',
      lines: [{ type: 'turn.completed' }],
      exit: { exitCode: 127 },
      verdict: failed('AgentFailed', 'Codex ended with exit code 127: a program was not found'),
    },
    {
      agent: 'codex',
      how: 'with the last status of several',
      lines: [codexFailed('exceeded retry limit, last status: 503 Service Unavailable')],
      exit: { exitCode: 1 },
      verdict: failed('ModelUnavailable', 'exceeded retry limit, last status: 503 Service Unavailable'),
    },
    {
      agent: 'codex',
      how: 'with a failure that says nothing',
      lines: [{ type: 'turn.failed' }],
      exit: { exitCode: 1 },
      verdict: failed('AgentFailed', 'the agent ended with an error'),
    },
    {
      agent: 'codex',
      how: 'with a failure, by a signal',
      lines: [codexFailed('why')],
      exit: { exitCode: 143, signal: 15 },
      verdict: failed('AgentKilled', 'Codex was ended by signal 15'),
    },
    {
      agent: 'codex',
      how: 'as the program beside it says, the first reason kept',
      lines: [codexFailed('first'), { corral: 'end', code: 1, message: 'second' }],
      exit: { exitCode: 1 },
      verdict: failed('AgentFailed', 'first'),
    },
    {
      agent: 'codex',
      how: 'as the program beside it says, without a reason',
      lines: [{ type: 'turn.completed' }, { corral: 'end', code: 0 }],
      verdict: { ok: true },
    },
    {
      agent: 'gemini',
      how: 'without a result',
      lines: [],
      verdict: failed('AgentFailed', 'Gemini CLI ended without a result'),
    },
    {
      agent: 'gemini',
      how: 'without a program',
      lines: [],
      exit: { exitCode: 127 },
      verdict: failed('AgentNotInstalled', 'Gemini CLI is not installed in the sandbox'),
    },
    {
      agent: 'gemini',
      how: 'without a result, with an exit code',
      lines: [],
      exit: { exitCode: 3 },
      verdict: failed('AgentFailed', 'Gemini CLI ended with exit code 3'),
    },
    {
      agent: 'gemini',
      how: 'with an error that says nothing',
      lines: [{ type: 'result', status: 'error' }],
      verdict: failed('AgentFailed', 'Gemini CLI ended with an error'),
    },
    {
      agent: 'gemini',
      how: 'well',
      lines: [{ type: 'result', status: 'success' }],
      verdict: { ok: true },
    },
    {
      agent: 'opencode',
      how: 'without a program',
      lines: [],
      exit: { exitCode: 127 },
      verdict: failed('AgentNotInstalled', 'OpenCode is not installed in the sandbox'),
    },
    {
      agent: 'opencode',
      how: 'without a step',
      lines: [],
      verdict: failed('AgentFailed', 'OpenCode ended without a step'),
    },
    {
      agent: 'opencode',
      how: 'after a step that wanted to go on',
      lines: [{ type: 'step_finish', part: { reason: 'tool-calls' } }],
      verdict: failed('AgentFailed', 'OpenCode ended after a step that ended with "tool-calls"'),
    },
    {
      agent: 'opencode',
      how: 'well',
      lines: [{ type: 'step_finish', part: { reason: 'stop' } }],
      verdict: { ok: true },
    },
    {
      agent: 'opencode',
      how: 'with an error of a name alone',
      lines: [{ type: 'error', error: { name: 'Oh' } }],
      verdict: failed('AgentFailed', 'Oh'),
    },
    {
      agent: 'opencode',
      how: 'with an error that says nothing',
      lines: [{ type: 'error' }],
      verdict: failed('AgentFailed', 'OpenCode reported an error'),
    },
    {
      agent: 'acp',
      how: 'without an answer',
      lines: [],
      verdict: failed('AgentFailed', 'the ACP agent ended without an answer'),
    },
    { agent: 'acp', how: 'well', lines: [{ id: 1, result: { stopReason: 'end_turn' } }], verdict: { ok: true } },
    {
      agent: 'acp',
      how: 'early',
      lines: [{ id: 1, result: { stopReason: 'max_tokens' } }],
      verdict: failed('AgentFailed', 'the ACP agent stopped: max_tokens'),
    },
    {
      agent: 'acp',
      how: 'without a program',
      lines: [{ corral: 'end', code: 127, message: 'not found' }],
      exit: { exitCode: 127 },
      verdict: failed('AgentNotInstalled', 'not found'),
    },
    {
      agent: 'acp',
      how: 'as the program beside it says',
      lines: [{ corral: 'end', code: 1, message: 'why' }],
      exit: { exitCode: 1 },
      verdict: failed('AgentFailed', 'why'),
    },
    {
      agent: 'acp',
      how: 'by a signal',
      lines: [{ corral: 'end', code: 1, message: 'why' }],
      exit: { exitCode: 143, signal: 15 },
      verdict: failed('AgentKilled', 'the ACP agent was ended by signal 15'),
    },
  ])('$agent: $how', ({ agent, lines, exit, verdict }) => {
    expect(play(agent, lines, exit).verdict).toEqual(verdict)
  })
})
