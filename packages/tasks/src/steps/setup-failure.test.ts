import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentTask } from '@corral/resources'
import { temporaryDirectory } from '@corral/testing'
import { expect, it } from 'vitest'
import { setupScript } from '../sandbox/scripts.js'
import { setupFailureMessage } from './setup-failure.js'

const environment = {
  commit: 'c',
  setup: 'npm ci',
  update: 'npm install',
  snapshot: { name: 'web-1', environment: 'web', key: 'k', exact: false, builtAt: '2026-11-19T10:00:00.000Z' },
}
const { update: _, ...withoutUpdate } = environment

it.each<{ when: string; own?: string; status: AgentTask['status']; tail?: string; says: RegExp }>([
  { when: 'set-up fails', status: {}, tail: 'no compiler', says: /^the set-up command .* exit code 7: no compiler$/ },
  { when: 'it said nothing', status: {}, tail: '\n', says: /^the set-up command .* exit code 7 and said nothing$/ },
  {
    when: 'the update of a snapshot fails',
    status: { environment },
    says: /^the update command, .* snapshot web-1 .* exit code 7 and said nothing$/,
  },
  { when: 'set-up is what updates', status: { environment: withoutUpdate }, says: /^the set-up command ended/ },
  { when: 'the task brought its own', own: 'make', status: { environment }, says: /^the set-up command ended/ },
])('says what ended when $when', ({ own, status, tail = '', says }) => {
  const spec = { repository: { url: '/srv/r' }, ...(own ? { setup: own } : {}) } as AgentTask['spec']
  expect(setupFailureMessage({ spec, ...(status ? { status } : {}) }, { exitCode: 7, tail })).toMatch(says)
})

it.each([
  { when: 'a command of a list fails without a word', setup: 'cd /\ntest -f nowhere', says: 'line 2: test -f nowhere' },
  { when: 'the front of a pipe fails', setup: 'false | cat', says: 'line 1: false | cat' },
  { when: 'a sourced file fails', setup: 'true\n. ./sourced', says: undefined },
  { when: 'a failure is taken up', setup: 'false || x=1\nif false; then :; fi\nexit 3', says: undefined },
])('set-up says the line it ended at when $when', async ({ setup, says }) => {
  await using directory = temporaryDirectory()
  writeFileSync(join(directory.path, 'sourced'), ':\nfalse\n')
  const env = { PATH: process.env.PATH, REPO: directory.path, SETUP: setup }
  const { status, stderr } = spawnSync('/bin/sh', ['-c', setupScript], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  expect(status).not.toBe(0)
  expect(stderr).toBe(says === undefined ? '' : `set-up ended at ${says}\n`)
})
