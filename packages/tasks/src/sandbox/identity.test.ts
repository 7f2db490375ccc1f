import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { hasIdentity } from './scripts.js'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-identity-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function has(config: string): boolean {
  const file = join(directory, 'config')
  writeFileSync(file, config)
  const script = `set -eu\n${hasIdentity}\nif has_identity "$FILE" 'A B' 'a@b'; then echo yes; fi`
  const { stdout, stderr } = spawnSync('/bin/sh', ['-c', script], { env: { FILE: file }, encoding: 'utf8' })
  expect(stderr).toBe('')
  return stdout === 'yes\n'
}

const ours = '[core]\n\tbare = false\n[user]\n\tname = "A B"\n\temail = "a@b"\n'

it.each<{ what: string; more: string }>([
  { what: 'alone', more: '' },
  { what: 'with other sections', more: '[remote "x"]\n\turl = /srv/user/app\n' },
])('an identity of ours $what is not set again', ({ more }) => {
  expect(has(ours + more)).toBe(true)
})

it.each<{ what: string; config: string }>([
  { what: 'no user', config: '[core]\n\tbare = false\n' },
  { what: 'another name', config: '[user]\n\tname = "A C"\n\temail = "a@b"\n' },
  { what: 'a second user', config: `${ours}[user]\n\tname = "Z"\n` },
  { what: 'a second user in other letters', config: `${ours}[USER]\n\tname = "Z"\n` },
  { what: 'a second user on one line', config: `${ours}  [user] name = Z\n` },
  { what: 'a name that is there twice', config: `${ours}\tname = "A B"\n` },
  { what: 'a committer', config: `${ours}[committer]\n\tname = "Z"\n` },
  { what: 'another file', config: `${ours}[include]\n\tpath = z\n` },
])('$what in the configuration is replaced', ({ config }) => {
  expect(has(config)).toBe(false)
})
