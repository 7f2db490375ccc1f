import { readFileSync } from 'node:fs'
import { type AgentEvent, agentEventSchema } from '@corral/protocol'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AgentParser } from '../agent-adapter.js'
import { CodexParser } from './codex/codex-parser.js'
import { GeminiParser } from './gemini/gemini-parser.js'
import { OpencodeParser } from './opencode/opencode-parser.js'

const parsers: Record<string, () => AgentParser> = {
  codex: () => new CodexParser(),
  gemini: () => new GeminiParser(),
  opencode: () => new OpencodeParser(),
}
const recorded = (run: string): Uint8Array =>
  readFileSync(new URL(`${run.replace('/', '/fixtures/')}.ndjson`, import.meta.url))
const parserOf = (run: string): AgentParser => parsers[run.split('/')[0] ?? '']!()

function play(run: string, exit: { exitCode: number; signal?: number }, chunks: Uint8Array[] = [recorded(run)]) {
  const parser = parserOf(run)
  const events = chunks.flatMap((chunk) => parser.push(chunk, 'stdout'))
  events.push(...parser.end(exit))
  for (const event of events) agentEventSchema.parse(event)
  return { events, verdict: parser.verdict }
}

function told(event: AgentEvent): string {
  switch (event.type) {
    case 'question':
      return `asks ${event.text} (${event.options.map(({ label }) => label).join(', ')})`
    case 'answer':
      return `hears ${event.text}`
    case 'message':
      if (event.role === 'user') return `is told ${event.text}`
      return `${event.thinking ? 'thinks' : event.role === 'system' ? 'notes' : 'says'} ${event.text}`.slice(0, 60)
    case 'tool_call':
      return `calls ${event.tool} ${event.summary}`.trim()
    case 'tool_result':
      return `gets ${event.is_error ? 'an error' : 'an answer'}`
    case 'file_changed':
      return `${event.change} ${event.path}`
    case 'usage':
      return `used ${event.input_tokens} + ${event.cache_read_tokens} cached, ${event.output_tokens} out (${event.scope})`
    default:
      return event.type
  }
}

const metadataNote = 'notes Model metadata for `gpt-5` not found. Defaulting to fallback '.slice(0, 60)

describe('a recorded run', () => {
  it.each<{ run: string; exit: { exitCode: number; signal?: number }; tells: string[]; verdict: object }>([
    {
      run: 'codex/run',
      exit: { exitCode: 0 },
      tells: [
        metadataNote,
        'thinks Let me think.',
        'says Writing.',
        "calls shell /bin/bash -lc 'echo hi > hello.txt; cat hello.txt'",
        'gets an answer',
        "calls shell /bin/bash -lc 'echo one'",
        'gets an answer',
        "calls shell /bin/bash -lc 'exit 3'",
        'gets an error',
        'says Done first.',
        'used 36 + 8 cached, 28 out (total)',
      ],
      verdict: { ok: true },
    },
    {
      run: 'codex/file-change',
      exit: { exitCode: 0 },
      tells: [metadataNote, 'written /workspace/repo/patched.txt', 'says x', 'used 18 + 4 cached, 14 out (total)'],
      verdict: { ok: true },
    },
    {
      run: 'codex/mcp-subagent',
      exit: { exitCode: 0 },
      tells: [
        metadataNote,
        'calls cor.ping',
        'gets an answer',
        'calls spawn_agent SUBX',
        'gets an answer',
        'says sub or main',
        'used 27 + 6 cached, 21 out (total)',
      ],
      verdict: { ok: true },
    },
    {
      run: 'codex/recovered',
      exit: { exitCode: 0 },
      tells: [metadataNote, 'error', 'error', 'says Done.', 'used 9 + 2 cached, 7 out (total)'],
      verdict: { ok: true },
    },
    {
      run: 'codex/error-401',
      exit: { exitCode: 1 },
      tells: [metadataNote, 'error', 'error', 'error'],
      verdict: { ok: false, cause: 'ModelRefused', message: expect.stringContaining('401 Unauthorized: injected 401') },
    },
    {
      run: 'codex/app-server-steer',
      exit: { exitCode: 0 },
      tells: [
        metadataNote,
        "calls shell /bin/bash -lc 'touch made.txt; sleep 3; echo slept'",
        'gets an answer',
        'is told STEER-ME',
        "calls shell /bin/bash -lc 'echo two > two.txt'",
        'gets an answer',
        'says Done.',
        'used 36 + 0 cached, 60 out (total)',
      ],
      verdict: { ok: true },
    },
    {
      run: 'codex/app-server-asks',
      exit: { exitCode: 0 },
      tells: [
        metadataNote,
        "calls shell /bin/bash -lc 'touch made.txt; sleep 3; echo slept'",
        "asks /bin/bash -lc 'touch made.txt; sleep 3; echo slept' (Allow, Deny)",
        'hears Allow',
        'gets an answer',
        "calls shell /bin/bash -lc 'echo two > two.txt'",
        "asks /bin/bash -lc 'echo two > two.txt' (Allow, Deny)",
        'hears Allow',
        'gets an answer',
        'says Done.',
        'used 36 + 0 cached, 60 out (total)',
      ],
      verdict: { ok: true },
    },
    {
      run: 'codex/app-server-error-401',
      exit: { exitCode: 1 },
      tells: [metadataNote, ...Array(4).fill('error'), 'is told STEER-ME', ...Array(6).fill('error')],
      verdict: { ok: false, cause: 'ModelRefused', message: expect.stringContaining('401 Unauthorized: scripted 401') },
    },
    {
      run: 'codex/sigterm',
      exit: { exitCode: 143, signal: 15 },
      tells: [metadataNote, "calls shell /bin/bash -lc 'sleep 30'"],
      verdict: { ok: false, cause: 'AgentKilled', message: 'Codex was ended by signal 15' },
    },
    {
      run: 'codex/sigterm',
      exit: { exitCode: 0 },
      tells: [metadataNote, "calls shell /bin/bash -lc 'sleep 30'"],
      verdict: { ok: false, cause: 'AgentFailed', message: 'Codex ended without completing its turn' },
    },
    {
      run: 'gemini/run',
      exit: { exitCode: 0 },
      tells: [
        'says Writing.',
        'calls write_file hello.txt',
        'gets an answer',
        'written hello.txt',
        'calls run_shell_command echo one',
        'calls run_shell_command exit 3',
        'gets an answer',
        'gets an answer',
        'says Done first.',
        'used 27 + 6 cached, 21 out (total)',
      ],
      verdict: { ok: true },
    },
    {
      run: 'gemini/error-401',
      exit: { exitCode: 145 },
      tells: ['used 0 + 0 cached, 0 out (total)', 'error'],
      verdict: { ok: false, cause: 'ModelRefused', message: expect.stringContaining('injected 401') },
    },
    {
      run: 'gemini/mcp-subagent',
      exit: { exitCode: 0 },
      tells: [
        'calls mcp_cor_ping',
        'gets an answer',
        'calls invoke_agent SUBG',
        'gets an answer',
        'says end',
        'used 45 + 10 cached, 35 out (total)',
      ],
      verdict: { ok: true },
    },
    {
      run: 'opencode/run',
      exit: { exitCode: 0 },
      tells: [
        'thinks Let me think.',
        'says Writing.',
        'calls write /workspace/repo/hello.txt',
        'gets an answer',
        'written /workspace/repo/hello.txt',
        'used 9 + 2 cached, 7 out (total)',
        'calls bash exit 3',
        'gets an error',
        'calls bash echo one',
        'gets an answer',
        'used 18 + 4 cached, 14 out (total)',
        'says Done first.',
        'used 27 + 6 cached, 21 out (total)',
      ],
      verdict: { ok: true },
    },
    {
      run: 'opencode/error-401',
      exit: { exitCode: 1 },
      tells: ['error'],
      verdict: { ok: false, cause: 'ModelRefused', message: 'injected 401' },
    },
    {
      run: 'opencode/permission-rejected',
      exit: { exitCode: 0 },
      tells: ['calls bash touch asked', 'gets an error', 'used 9 + 2 cached, 7 out (total)'],
      verdict: { ok: false, cause: 'AgentFailed', message: 'OpenCode ended after a step that ended with "tool-calls"' },
    },
  ])('$run with exit code $exit.exitCode', ({ run, exit, tells, verdict }) => {
    const played = play(run, exit)
    expect(played.events.map(told)).toEqual(tells)
    expect(played.verdict).toEqual(verdict)
  })

  it.each(['codex/run', 'gemini/run', 'opencode/run'])('%s gives the same events however its bytes are cut', (run) => {
    const bytes = recorded(run)
    const whole = play(run, { exitCode: 0 }).events
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 8 }), (cuts) => {
        const places = [0, ...cuts.sort((left, right) => left - right), bytes.length]
        const chunks = places.slice(1).map((end, index) => bytes.subarray(places[index], end))
        expect(play(run, { exitCode: 0 }, chunks).events).toEqual(whole)
      }),
      { numRuns: 30 },
    )
  })

  it.each(Object.keys(parsers))('%s that is not there is told apart from one that fails', (name) => {
    const { verdict } = play(`${name}/none`, { exitCode: 127 }, [])
    expect(verdict).toMatchObject({ ok: false, cause: 'AgentNotInstalled' })
    expect(play(`${name}/none`, { exitCode: 3 }, []).verdict).toMatchObject({ ok: false, cause: 'AgentFailed' })
  })

  it.each(Object.keys(parsers))('%s that writes no JSON is shown as it is, and long lines cost no memory', (name) => {
    const garbage = Buffer.from('warning: something\n{"type":\n[1,2]\n{"type":"unknown","item":7}\n')
    const { events } = play(`${name}/none`, { exitCode: 1 }, [garbage, Buffer.alloc(9_000_000, 'x')])
    expect(events.map((event) => (event.type === 'output' ? event.text : event.type))).toEqual([
      'warning: something\n',
      '{"type":\n',
      '[1,2]\n',
      'error',
    ])
  })
})

describe('Gemini CLI', () => {
  it('joins the pieces of an answer to paragraphs', () => {
    const say = (content: string): string =>
      JSON.stringify({ type: 'message', role: 'assistant', content, delta: true })
    const lines = ['First ', 'part.\n\nSec', 'ond', ' part'].map(say).join('\n')
    const tool = JSON.stringify({ type: 'tool_use', tool_name: 't', tool_id: '1', parameters: {} })
    const { events } = play('gemini/none', { exitCode: 1 }, [Buffer.from(`${lines}\n${tool}\n${say('cut off')}\n`)])
    expect(events.map(told)).toEqual(['says First part.', 'says Second part', 'calls t', 'says cut off'])
  })
})
