import { expect, it } from 'vitest'
import { missingProgramHint } from './missing-program.js'

it.each([
  { says: 'bash: line 1: meson: command not found', hint: 'Let set-up install it first: `pip install meson`.' },
  { says: 'sh: 1: pnpm: not found', hint: 'npm install --global --prefix ~/.local pnpm' },
  { says: '/bin/sh: 3: turbo: not found\nmake: *** [Makefile:2: all] Error 127', hint: 'The sandbox has no turbo.' },
  { says: '/usr/bin/env: ‘python’: No such file or directory', hint: 'Name python under tools' },
  { says: 'make: cargo: No such file or directory', hint: 'Name rust under tools' },
  { says: './setup.sh: line 14: sudo: command not found', hint: 'corral image build NAME --debian' },
  {
    says: 'sudo: The "no new privileges" flag is set, which prevents sudo from running',
    hint: 'cannot change its system',
  },
  { says: 'E: Unable to acquire the dpkg frontend lock, are you root?', hint: 'cannot change its system' },
  { says: 'bash: line 1: frobnicate: command not found', hint: 'let set-up put it into ~/.local/bin' },
  { says: 'xargs: yarn: No such file or directory', hint: '--prefix ~/.local yarn' },
  { says: 'timeout: failed to run command ‘just’: No such file or directory', hint: '`pip install just`' },
  { says: 'cgo: C compiler "gcc" not found: exec: "gcc": executable file not found in $PATH', hint: 'has no gcc.' },
  { says: 'error: linker `cc` not found', hint: 'has no cc.' },
  { says: "error: command 'g++' failed: No such file or directory", hint: 'has no g++.' },
  { says: 'Error: spawn docker ENOENT', hint: 'cannot change its system (docker)' },
])('a set-up that ended with "$says" says what to do', ({ says, hint }) => {
  expect(missingProgramHint(`some output\n${says}\n`)).toContain(hint)
})

it.each(['npm error code E404', 'cp: cannot stat a: No such file or directory', 'error: test not found', ''])(
  'nothing is made up about "%s"',
  (says) => {
    expect(missingProgramHint(says)).toBeUndefined()
  },
)

it.each([
  { says: 'bash: line 1: redis-server: command not found', hint: 'Services start before set-up' },
  { says: 'bash: line 1: pnpm: command not found', hint: 'Services start before set-up' },
  { says: 'bash: line 1: docker: command not found', hint: 'A service is an ordinary user' },
  { says: 'bash: line 1: java: command not found', hint: 'Name java under tools' },
])('a service that ended with "$says" is not told to let set-up install it', ({ says, hint }) => {
  expect(missingProgramHint(says, 'service')).toContain(hint)
})
