import { execFileSync } from 'node:child_process'
import { agentEventSchema } from '@corral/protocol'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { commandAgent } from './command-agent.js'

const task = { taskId: 'task-1', prompt: 'do\nit "well"', workDir: '/tmp', stateDir: '/state' }
const launch = (command: string, prompt = task.prompt) => commandAgent.launch({ ...task, prompt, options: { command } })

describe('the command agent', () => {
  it('runs the command line in a shell, with the prompt in the environment and in a file', () => {
    const { argv, env, cwd, files } = launch('printf "%s" "$CORRAL_PROMPT"; pwd')
    const output = execFileSync(argv[0] ?? '', argv.slice(1), { env, cwd, encoding: 'utf8' })
    expect(output).toBe('do\nit "well"/tmp\n')
    expect(files).toEqual([{ path: '/state/prompt.md', content: task.prompt, mode: '0600' }])
    expect(env.CORRAL_PROMPT_FILE).toBe('/state/prompt.md')
  })

  it('keeps a prompt that is too long for the environment in the file alone', () => {
    const { env, files } = launch('echo hi', 'ä'.repeat(60_000))
    expect(env).not.toHaveProperty('CORRAL_PROMPT')
    expect(files[0]?.content).toHaveLength(60_000)
  })

  it('finds the broker where a provider was named, under the names the provider’s clients look for', () => {
    const broker = { baseUrl: 'http://corral-broker:8787', token: 't', kind: 'openai' }
    const { env } = commandAgent.launch({ ...task, options: { command: 'x', model: 'm' }, broker })
    expect(env).toMatchObject({
      OPENAI_BASE_URL: 'http://corral-broker:8787/v1',
      OPENAI_API_KEY: 't',
      CORRAL_MODEL: 'm',
    })
  })

  it('turns lines into output events, each with its stream', () => {
    const parser = commandAgent.createParser()
    const events = [
      ...parser.push(Buffer.from('one\ntw'), 'stdout'),
      ...parser.push(Buffer.from('oops\r\n'), 'stderr'),
      ...parser.push(Buffer.from('o\nlast'), 'stdout'),
      ...parser.end({ exitCode: 0 }),
    ]
    expect(events).toEqual([
      { type: 'output', stream: 'stdout', text: 'one\n' },
      { type: 'output', stream: 'stderr', text: 'oops\n' },
      { type: 'output', stream: 'stdout', text: 'two\n' },
      { type: 'output', stream: 'stdout', text: 'last\n' },
    ])
    expect(parser.verdict).toEqual({ ok: true })
  })

  it.each([
    { when: 'exit code 2', exit: { exitCode: 2 }, cause: 'AgentFailed', says: 'exit code 2' },
    { when: 'a missing program', exit: { exitCode: 127 }, cause: 'AgentFailed', says: 'not found' },
    { when: 'SIGKILL', exit: { exitCode: 137, signal: 9 }, cause: 'AgentKilled', says: 'signal 9' },
  ])('has failed with $when', ({ exit, cause, says }) => {
    const parser = commandAgent.createParser()
    parser.end(exit)
    expect(parser.verdict).toMatchObject({ ok: false, cause, message: expect.stringContaining(says) })
  })

  it('gives the same bounded events however the bytes are cut', () => {
    const bytes = fc.array(fc.constantFrom(0x0a, 0x0d, 0x41, 0xc3, 0xa4, 0xf0, 0x00), { maxLength: 400 })
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(400)), fc.nat(3), (list, cuts, blowUp) => {
        const all = Buffer.concat([Buffer.from(list), Buffer.alloc(blowUp * 10_000, 'x')])
        const read = (chunks: Uint8Array[]) => {
          const parser = commandAgent.createParser()
          return [...chunks.flatMap((chunk) => parser.push(chunk, 'stdout')), ...parser.end({ exitCode: 0 })]
        }
        const borders = [0, ...cuts.map((cut) => Math.min(cut, all.length)).sort((a, b) => a - b), all.length]
        const whole = read([all])
        expect(read(borders.slice(1).map((end, i) => all.subarray(borders[i], end)))).toEqual(whole)
        for (const event of whole) expect(agentEventSchema.safeParse(event).success).toBe(true)
      }),
    )
  })
})
