import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { hostToolchain, installationOf } from './host-toolchain.js'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'corral-tools-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

/** A version manager's layout: `<home>/versions/v20/bin/node`, with npm as a link into lib. */
function installNode(mode: number): string {
  const prefix = join(root, 'home', 'versions', 'v20')
  mkdirSync(join(prefix, 'bin'), { recursive: true })
  mkdirSync(join(prefix, 'lib', 'node_modules', 'npm'), { recursive: true })
  writeFileSync(join(prefix, 'bin', 'node'), '#!/bin/sh\n', { mode: 0o755 })
  writeFileSync(join(prefix, 'lib', 'node_modules', 'npm', 'cli.js'), '')
  symlinkSync('../lib/node_modules/npm/cli.js', join(prefix, 'bin', 'npm'))
  chmodSync(root, 0o711)
  chmodSync(join(root, 'home'), mode)
  return join(prefix, 'bin', 'node')
}

describe('hostToolchain', () => {
  const usr = { source: '/usr', target: '/usr', readOnly: true }
  const options = (nodePath: string) => ({ dataDir: join(root, 'data'), nodePath, searchPath: '' })

  it('is /usr alone where everything lies there', async () => {
    expect(await hostToolchain(options('/usr/bin/env'))).toEqual({ mounts: [usr], path: [] })
  })

  it('adds an installation that everybody can reach, under a neutral name', async () => {
    const nodePath = installNode(0o755)
    const target = '/opt/corral/toolchain/node'
    const part = (name: string) => {
      const source = join(root, 'home', 'versions', 'v20', name)
      return { source, target: `${target}/${name}`, readOnly: true }
    }
    expect(await hostToolchain(options(nodePath))).toEqual({
      mounts: [usr, part('bin'), part('lib/node_modules')],
      path: [`${target}/bin`],
    })
  })

  it('starts where git on the path is a shim of a version manager, which would find nothing inside', async () => {
    const shims = join(root, 'shims')
    mkdirSync(shims)
    writeFileSync(join(shims, 'git'), '#!/bin/sh\n', { mode: 0o755 })
    const found = await hostToolchain({ ...options('/usr/bin/env'), searchPath: `${shims}:/usr/bin` })
    expect(found).toEqual({ mounts: [usr], path: [] })
  })

  it.each([
    { where: 'beside programs of other kinds', put: (home: string) => join(home, 'bin') },
    { where: 'in a home directory whose bin holds nothing else', put: (home: string) => join(home, 'other') },
  ])('shows nothing else of the host when Node lies $where', async ({ put }) => {
    const home = join(root, 'home')
    mkdirSync(join(home, 'bin'), { recursive: true })
    mkdirSync(join(home, '.ssh'))
    mkdirSync(put(home), { recursive: true })
    chmodSync(root, 0o711)
    writeFileSync(join(home, 'bin', 'node'), '#!/bin/sh\n', { mode: 0o755 })
    writeFileSync(join(put(home), 'deploy'), '#!/bin/sh\nTOKEN=secret', { mode: 0o755 })
    writeFileSync(join(home, '.ssh', 'id'), 'key')
    const { mounts } = await hostToolchain(options(join(home, 'bin', 'node')))
    const visible = mounts.slice(1).flatMap(({ source }) => readdirSync(source, { recursive: true, encoding: 'utf8' }))
    expect(visible.map((name) => basename(name)).filter((name) => name !== 'bin')).toEqual(['node'])
  })

  it('copies one that lies below a private directory, once', async () => {
    const nodePath = installNode(0o700)
    const first = await hostToolchain(options(nodePath))
    const source = first.mounts[1]?.source ?? ''
    expect(source).toMatch(/data\/runtime\/[0-9a-f]{16}$/)
    for (const file of ['bin/node', 'bin/npm', 'lib/node_modules/npm/cli.js'])
      expect(existsSync(join(source, file)), file).toBe(true)
    expect(await hostToolchain(options(nodePath))).toEqual(first)
  })
})

it('finds the prefix of an executable outside /usr only', () => {
  expect(installationOf('/usr/bin/env')).toBeUndefined()
  expect(installationOf(installNode(0o755))).toBe(join(root, 'home', 'versions', 'v20'))
})
