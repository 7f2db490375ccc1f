import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTaskRequestSchema, isInjectablePath } from './task-api.js'
import { clipText, taskEventSchema } from './task-events.js'

const request = { repo: '/srv/repo', task: 'fix it' }

describe('S4-A1, FR-1: POST /tasks', () => {
  it.each([
    { what: 'the least', body: request },
    { what: 'a command agent', body: { ...request, agent: { name: 'command', command: 'make' } } },
    { what: 'an agent with options', body: { ...request, agent: { name: 'claude', model: 'm' } } },
    { what: 'an agent by its name alone', body: { ...request, agent: 'codex' } },
    { what: 'limits', body: { ...request, limits: { max_tokens: 1000, max_cost_usd: 0.5 } } },
    {
      what: 'servers of tools',
      body: {
        ...request,
        mcp_servers: [
          { name: 'a', command: 'node', args: ['x'], env: { A: 'b' } },
          { name: 'b', url: 'https://x.example' },
        ],
      },
    },
    { what: 'branches', body: { ...request, base_branch: 'main', new_branch: 'feature/a-1' } },
    { what: 'files (FR-9)', body: { ...request, files: [{ path: 'a/b.txt', content: 'x', mode: '0755' }] } },
    { what: 'egress', body: { ...request, egress: ['*.example.org:443', 'packages.example.com:80'] } },
  ])('accepts $what', ({ body }) => {
    expect(createTaskRequestSchema.parse(body)).toEqual(body)
  })

  it.each([
    { what: 'no repository', body: { task: 'x' } },
    { what: 'an empty prompt', body: { ...request, task: '' } },
    { what: 'an unknown field', body: { ...request, bracnh: 'x' } },
    { what: 'an agent without a name', body: { ...request, agent: { model: 'm' } } },
    { what: 'a limit of nothing', body: { ...request, limits: { max_tokens: 0 } } },
    { what: 'a limit that is not known', body: { ...request, limits: { tokens: 5 } } },
    {
      what: 'a server that is a program and an address',
      body: { ...request, mcp_servers: [{ name: 'a', command: 'x', url: 'http://x' }] },
    },
    { what: 'a server at a file', body: { ...request, mcp_servers: [{ name: 'a', url: 'file:///etc' }] } },
    { what: 'no time', body: { ...request, timeout_seconds: 0 } },
    { what: 'a fraction of a second', body: { ...request, timeout_seconds: 1.5 } },
    { what: 'a file outside', body: { ...request, files: [{ path: '../x', content: '' }] } },
    { what: 'a file in .git', body: { ...request, files: [{ path: '.git/hooks/x', content: '' }] } },
    { what: 'egress without port', body: { ...request, egress: ['example.org'] } },
    { what: 'a branch with a space', body: { ...request, new_branch: 'a b' } },
  ])('refuses $what', ({ body }) => {
    expect(createTaskRequestSchema.safeParse(body).success).toBe(false)
  })
})

describe('names and paths', () => {
  it.each(['a', 'a/b', '.github/x', '..a', '.gitignore'])('%s may be written', (path) => {
    expect(isInjectablePath(path)).toBe(true)
  })
  it.each(['/a', 'a/../b', '..', '.', './a', 'a//b', 'a/', '.git/config', '.GIT/config', 'a\0', 'a\\b'])(
    '%s may not be written',
    (path) => {
      expect(isInjectablePath(path)).toBe(false)
    },
  )
})

describe('events', () => {
  it('carry a sequence and a time beside their own fields', () => {
    const event = { sequence: 1, time: '2026-01-01T00:00:00.000Z', type: 'message', role: 'assistant', text: 'hi' }
    expect(taskEventSchema.parse(event)).toEqual(event)
    expect(taskEventSchema.safeParse({ ...event, sequence: 0 }).success).toBe(false)
    expect(taskEventSchema.safeParse({ ...event, type: 'gossip' }).success).toBe(false)
  })

  it('clips text to its limit, whole characters only', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), fc.integer({ min: 1, max: 100 }), (text, limit) => {
        const clipped = clipText(text, limit)
        expect(clipped.length).toBeLessThanOrEqual(limit)
        if (text.length <= limit) expect(clipped).toBe(text)
        // Throws on half a surrogate pair.
        encodeURIComponent(clipped)
      }),
    )
  })
})
