import { parseEnvironmentFile } from '@corral/tasks'
import { describe, expect, it } from 'vitest'
import { detectSetup } from './detect-setup.js'
import { environmentFileText } from './environment-text.js'

describe('detectSetup', () => {
  it.each([
    { when: 'there is nothing it knows', files: ['README.md'], setup: [] },
    { when: 'npm has a lock file', files: ['package.json', 'package-lock.json'], setup: ['npm ci'] },
    { when: 'there is only a package.json', files: ['package.json'], setup: ['npm install --no-package-lock'] },
    {
      when: 'there are two languages',
      files: ['go.mod', 'Cargo.toml', 'Cargo.lock'],
      setup: ['go mod download', 'cargo fetch --locked'],
    },
    {
      when: 'Python has several files',
      files: ['requirements.txt', 'pyproject.toml'],
      setup: ['python3 -m venv .venv', '.venv/bin/pip install -r requirements.txt'],
    },
  ])('when $when', ({ files, setup }) => {
    expect(detectSetup(new Set(files)).flatMap((each) => each.setup)).toEqual(setup)
  })

  it('writes a file that the platform reads back', () => {
    const detected = detectSetup(new Set(['package-lock.json', 'go.mod']))
    const text = environmentFileText({ detected, versionFiles: ['go.mod'] })
    expect(text).toContain('# tools: versions come from go.mod')
    expect(parseEnvironmentFile(text)).toMatchObject({
      setup: 'npm ci\ngo mod download',
      env: {},
      path: ['node_modules/.bin'],
      checks: [],
      egress: { setup: ['packages'], agent: [] },
    })
  })

  it('writes what a file of another tool says instead', () => {
    const foreign = {
      source: '.devcontainer.json',
      setup: 'make a\nmake "b: c"',
      env: { MODE: 'dev' },
      tools: { python: '3.10' },
      start: ['npm run dev'],
    }
    const text = environmentFileText({ detected: detectSetup(new Set(['go.mod'])), foreign, versionFiles: [] })
    expect(text).toContain('# from .devcontainer.json')
    expect(parseEnvironmentFile(text)).toMatchObject({
      setup: foreign.setup,
      env: foreign.env,
      tools: foreign.tools,
      start: [{ run: 'npm run dev' }],
    })
  })
})
