import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type TaskOptions, taskRequest } from './task-request.js'

describe('what the options of a task mean', () => {
  it.each<{ when: string; options: TaskOptions; request: object }>([
    {
      when: 'nothing but a repository is given',
      options: { repo: '/src/app' },
      request: { repo: '/src/app', task: 'do it' },
    },
    {
      when: 'the repository is a relative path',
      options: { repo: 'app' },
      request: { repo: resolve('app'), task: 'do it' },
    },
    {
      when: 'the repository is an address',
      options: { repo: 'https://example.com/a.git' },
      request: { repo: 'https://example.com/a.git', task: 'do it' },
    },
    {
      when: 'the repository is an scp-like address',
      options: { repo: 'git@example.com:a/b.git' },
      request: { repo: 'git@example.com:a/b.git', task: 'do it' },
    },
    {
      when: 'only a command is given',
      options: { repo: '/r', command: 'make' },
      request: { repo: '/r', task: 'do it', agent: { name: 'command', command: 'make' } },
    },
    {
      when: 'an agent and a model are given',
      options: { repo: '/r', agent: 'claude', model: 'm' },
      request: { repo: '/r', task: 'do it', agent: { name: 'claude', model: 'm' } },
    },
    {
      when: 'servers of tools are given',
      options: { repo: '/r', mcp: ['house=node tools/mcp.mjs --all', 'docs=https://mcp.example.com/x?a=b'] },
      request: {
        repo: '/r',
        task: 'do it',
        mcp_servers: [
          { name: 'house', command: '/bin/sh', args: ['-c', 'node tools/mcp.mjs --all'] },
          { name: 'docs', url: 'https://mcp.example.com/x?a=b' },
        ],
      },
    },
    {
      when: 'branches, time, set-up and egress are given',
      options: {
        repo: '/r',
        branch: 'new',
        base: 'main',
        timeout: 90,
        setup: 'npm ci',
        allow: ['packages.example.com:443'],
        keep: true,
        template: 't',
      },
      request: {
        repo: '/r',
        task: 'do it',
        new_branch: 'new',
        base_branch: 'main',
        timeout_seconds: 90,
        setup: 'npm ci',
        egress: ['packages.example.com:443'],
        keep_sandbox: true,
        sandbox: { template: 't' },
      },
    },
  ])('when $when', ({ options, request }) => {
    expect(taskRequest('do it', options)).toEqual(request)
  })

  it.each<{ when: string; options: TaskOptions; says: RegExp }>([
    {
      when: 'the command agent has no command',
      options: { agent: 'command' },
      says: /^--agent command needs the command line that it runs/,
    },
    {
      when: 'a command is given to another agent',
      options: { agent: 'claude', command: 'x' },
      says: /^--agent claude: takes no --command/,
    },
    { when: 'the agent is not known', options: { agent: 'nobody' }, says: /there is no agent "nobody"/ },
    { when: 'a sandbox is held for years', options: { hold: 99_999_999 }, says: /^--hold: / },
    { when: 'the branch is no branch name', options: { branch: 'a..b' }, says: /^--branch: / },
    { when: 'an egress rule has no port', options: { allow: ['example.com'] }, says: /^--allow: must be host:port/ },
  ])('refuses with exit code 2 when $when', ({ options, says }) => {
    expect(() => taskRequest('do it', options)).toThrow(
      expect.objectContaining({ message: expect.stringMatching(says), exitCode: 2 }),
    )
  })
})

describe('a repository with a password in its address', () => {
  it.each([
    'user:hunter2-secret@host.example:x',
    'user:hunter2-secret@host.example/x.git',
    'https://user:hunter2-secret@host.example/x.git',
    'ssh://user:hunter2-secret@host.example/x.git',
  ])('%s is refused without repeating it', (repo) => {
    let error: unknown
    try {
      taskRequest('do it', { repo })
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({
      message: '--repo: the address of the repository carries a password',
      exitCode: 2,
      hint: expect.stringContaining('credential helper') as string,
    })
    expect(JSON.stringify([(error as Error).message, (error as { hint?: string }).hint])).not.toContain('hunter2')
  })
})
