import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  checkPackedPackages,
  lintPackedPackages,
  type PackedPackage,
  packPublicPackages,
} from '../../scripts/packed-packages.js'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
let target: string
let packed: PackedPackage[]

beforeAll(() => {
  target = mkdtempSync(join(tmpdir(), 'corral-pack-'))
  packed = packPublicPackages(root, target)
})
afterAll(() => rmSync(target, { recursive: true, force: true }))

describe('the packages people install', () => {
  it('are the SDK and what it needs', () => {
    expect(packed.map(({ name }) => name).sort()).toEqual([
      '@corral/agent-sandbox-sdk',
      '@corral/kube',
      '@corral/ports',
      '@corral/protocol',
      '@corral/resources',
    ])
  })

  it('can be imported, and required by CommonJS, where only their declared dependencies are installed', () => {
    expect(() => checkPackedPackages(root, packed)).not.toThrow()
  })

  it('resolve with their types from ES modules, bundlers and the require of this Node', async () => {
    expect(await lintPackedPackages(packed)).toEqual([])
  })

  it('are refused by name when one leans on a package that is not published', () => {
    const withoutKube = packed.filter(({ name }) => name !== '@corral/kube')
    expect(() => checkPackedPackages(root, withoutKube)).toThrow(
      '@corral/agent-sandbox-sdk depends on @corral/kube, which is private',
    )
  })
})
