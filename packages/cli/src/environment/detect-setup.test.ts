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

  it.each<{ when: string; files: Record<string, string>; checks: string[] }>([
    { when: 'npm has a test script', files: { 'package.json': '{"scripts":{"test":"mocha"}}' }, checks: ['npm test'] },
    {
      when: 'npm has only the script that npm init writes',
      files: { 'package.json': '{"scripts":{"test":"echo \\"Error: no test specified\\" && exit 1"}}' },
      checks: [],
    },
    { when: 'package.json is no JSON', files: { 'package.json': '{' }, checks: [] },
    {
      when: 'Python depends on pytest',
      files: { 'pyproject.toml': '[dependency-groups]\ntests = ["pytest"]' },
      checks: ['python -m pytest -q'],
    },
    { when: 'Python names no test runner', files: { 'requirements.txt': 'requests' }, checks: [] },
    {
      when: 'CMake has tests',
      files: { 'CMakeLists.txt': 'enable_testing()' },
      checks: ['cmake --build build -j 2 && ctest --test-dir build --output-on-failure'],
    },
    { when: 'CMake has none', files: { 'CMakeLists.txt': 'project(x)' }, checks: [] },
    { when: 'there is a Maven project', files: { 'pom.xml': '<project/>' }, checks: ['mvn -B -ntp -o test'] },
  ])('checks when $when', ({ files, checks }) => {
    const detected = detectSetup(new Set(Object.keys(files)), (file) => files[file])
    expect(detected.flatMap(({ check }) => (check ? [check.run] : []))).toEqual(checks)
    const request = parseEnvironmentFile(environmentFileText({ detected, versionFiles: [] }))
    expect(request.checks.map(({ command }) => command)).toEqual(checks)
  })

  it('asks Maven for a method that no test has, not for a class: else Surefire fetches no runner for the check', () => {
    const detected = detectSetup(new Set(['pom.xml']))
    const { setup } = parseEnvironmentFile(environmentFileText({ detected, versionFiles: [] }))
    expect(setup).toMatch(/ '-Dtest=\*#\w+' /)
  })

  it.each([
    { when: 'Rust has no version file', files: ['Cargo.toml'], tools: { rust: '1' } },
    { when: 'Rust has one', files: ['Cargo.toml', 'rust-toolchain.toml'], tools: {} },
  ])('tools when $when', ({ files, tools }) => {
    const text = environmentFileText({ detected: detectSetup(new Set(files)), versionFiles: [] })
    expect(parseEnvironmentFile(text).tools).toEqual(tools)
  })

  it('writes a file that the platform reads back', () => {
    const detected = detectSetup(new Set(['package-lock.json', 'go.mod']))
    const text = environmentFileText({ detected, versionFiles: ['go.mod'] })
    expect(text).toContain('# tools: versions come from go.mod')
    expect(parseEnvironmentFile(text)).toMatchObject({
      setup: 'npm ci\ngo mod download',
      env: {},
      path: ['node_modules/.bin'],
      checks: [{ name: 'go-test', command: 'go test ./...' }],
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
