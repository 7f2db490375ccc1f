import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseEnvironmentFile } from '@corral/tasks'
import { temporaryDirectory } from '@corral/testing'
import { describe, expect, it } from 'vitest'
import { detectParts, nestedLockFiles } from './detect-parts.js'
import { detectSetup } from './detect-setup.js'
import { environmentFileText } from './environment-text.js'

it.each<{ of: string; files: Record<string, string>; names: string[] }>([
  {
    of: 'a web interface beside a service in Go',
    files: { 'go.mod': 'module x', 'web/package.json': '{}', 'web/package-lock.json': '{}' },
    names: ['web/package-lock.json'],
  },
  {
    of: 'a service in Python below a project in Node',
    files: {
      'package.json': '{}',
      'package-lock.json': '{}',
      'services/api/uv.lock': '',
      'services/api/pyproject.toml': '',
    },
    names: ['services/api/uv.lock'],
  },
  {
    of: 'members of workspaces',
    files: { 'package.json': '{}', 'package-lock.json': '{}', 'a/package.json': '{}', 'docs/yarn.lock': '' },
    names: [],
  },
  { of: 'tools with a go.mod of their own', files: { 'go.mod': 'module x', 'tools/go.mod': 'module y' }, names: [] },
])('nestedLockFiles names what the set-up of the root leaves out, of $of', async ({ files, names }) => {
  await using root = directoryWith(files)
  const top = Object.keys(files).filter((file) => !file.includes('/'))
  expect(
    nestedLockFiles(
      root.path,
      detectSetup(new Set(top), (file) => files[file]),
    ),
  ).toEqual(names)
})

describe('detectParts', () => {
  it('passes over a directory that belongs to another account, such as the data of a database', async () => {
    await using root = directoryWith({ 'web/package.json': '{}', 'pgdata/base': 'x' })
    const closed = join(root.path, 'pgdata')
    chmodSync(closed, 0)
    try {
      expect(detectParts(root.path).map(({ path }) => path)).toEqual(['web'])
    } finally {
      chmodSync(closed, 0o755)
    }
  })

  it('finds the directories of a monorepo that have a set-up of their own', async () => {
    await using root = directoryWith({
      'web/package.json': '{"scripts":{"test":"vitest"}}',
      'web/package-lock.json': '{}',
      'services/api/requirements.txt': 'pytest',
      'services/mail/go.mod': 'module mail',
      'node_modules/x/package.json': '{}',
      'docs/package.json': '{}',
    })
    const parts = detectParts(root.path)
    expect(parts.map(({ name, path }) => `${name}: ${path}`)).toEqual([
      'api: services/api',
      'mail: services/mail',
      'web: web',
    ])
    const text = environmentFileText({ detected: [], parts, versionFiles: [] })
    expect(parseEnvironmentFile(text, 'file', 'api')).toMatchObject({
      setup:
        "cd -- 'services/api'\npython3 -m venv .venv\necho '*' > .venv/.gitignore\n.venv/bin/pip install -r requirements.txt",
      path: ['services/api/.venv/bin', 'web/node_modules/.bin'],
      directory: 'services/api',
    })
    expect(parseEnvironmentFile(text, 'file', 'web').checks).toMatchObject([
      { command: expect.stringContaining('npm test') },
    ])
  })

  it('writes the same check of two parts twice, as a person would', async () => {
    await using root = directoryWith({ 'a/go.mod': '', 'b/go.mod': '' })
    const text = environmentFileText({ detected: [], parts: detectParts(root.path), versionFiles: [] })
    expect(text.match(/run: go test .*/g)).toHaveLength(2)
    expect(text).not.toMatch(/[&*]ref/)
  })

  it.each(['rust-toolchain.toml', '.tool-versions'])('%s of the root counts for a part in Rust', async (file) => {
    await using root = directoryWith({ 'core/Cargo.lock': '', [file]: 'rust 1.75\n' })
    expect(detectParts(root.path)[0]?.detected[0]?.tools).toBeUndefined()
  })

  it('finds the test script of a package.json with a byte order mark', async () => {
    await using root = directoryWith({ 'web/package.json': '\uFEFF{"scripts":{"test":"vitest"}}' })
    expect(detectParts(root.path)[0]?.detected[0]?.check?.run).toBe('npm test')
  })

  it('tells two directories of one name apart', async () => {
    await using root = directoryWith({ 'a/api/go.mod': '', 'b/api/go.mod': '', '9/go.mod': '' })
    expect(detectParts(root.path).map(({ name }) => name)).toEqual(['api', 'b-api'])
  })
})

function directoryWith(files: Record<string, string>): ReturnType<typeof temporaryDirectory> {
  const root = temporaryDirectory('corral-parts-')
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root.path, path)), { recursive: true })
    writeFileSync(join(root.path, path), text)
  }
  return root
}
