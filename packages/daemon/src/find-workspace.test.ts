import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { findWorkspace } from './find-workspace.js'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'workspace-'))
  mkdirSync(join(root, 'home'))
  mkdirSync(join(root, 'work'))
  writeFileSync(join(root, 'file'), '')
})
afterEach(() => rmSync(root, { recursive: true }))

it.each<{ when: string; workspace?: string; is: string }>([
  { when: 'the template names one', workspace: 'work/', is: 'work' },
  { when: 'it names one that is not there', workspace: 'missing', is: 'home' },
  { when: 'it names a file', workspace: 'file', is: 'home' },
  { when: 'it names none', is: 'home' },
])('when $when', async ({ workspace, is }) => {
  const home = join(root, 'home')
  const env = { HOME: home, ...(workspace ? { CORRAL_WORKSPACE: `${root}/${workspace}` } : {}) }
  expect(await findWorkspace(env, join(root, 'none'))).toEqual({ directory: join(root, is), home })
})

it('knows none where there is no directory to write to', async () => {
  expect(await findWorkspace({ HOME: join(root, 'missing') }, join(root, 'none'))).toBeUndefined()
})
