import { closeSync, ftruncateSync, linkSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type TemporaryDirectory, temporaryDirectory } from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compiledSupervisor } from '../../packages/node/src/isolation/workbench.test-suite.js'
import { inspectTrees } from '../../packages/node/src/snapshots/inspect-trees.js'

const program = compiledSupervisor()
const uid = process.getuid?.()
/** Sealing needs the compiled supervisor; the files of a pod have one id for user and group, which a plain user may not have. */
const isHere = program !== undefined && uid !== undefined && process.getgid?.() === uid
const guardMs = 240_000
const secret = 'hunter22-hunter22'
const terabyte = 2 ** 40

const inspect = (source: string) =>
  inspectTrees({
    program: program ?? '',
    ownerUid: uid ?? 0,
    trees: [{ source, path: '/workspace/repo' }],
    secrets: [secret],
    signal: AbortSignal.timeout(guardMs / 2),
  })

describe.skipIf(!isHere)('a file with holes that says it has eight terabytes', () => {
  let scratch: TemporaryDirectory
  beforeEach(() => {
    scratch = temporaryDirectory()
  })
  afterEach(() => scratch[Symbol.asyncDispose]())

  function sparse(parts: readonly { at: number; text: string }[]): string {
    const tree = join(scratch.path, 'tree')
    mkdirSync(tree)
    const file = openSync(join(tree, 'huge'), 'wx')
    ftruncateSync(file, 8 * terabyte)
    for (const { at, text } of parts) writeSync(file, text, at)
    closeSync(file)
    return tree
  }
  it('is looked through for secrets at once', { timeout: guardMs }, async () => {
    const found = await inspect(sparse([{ at: 3 * terabyte, text: 'nothing of interest' }]))
    expect(found.files).toBe(2)
    expect(found.bytes).toBeLessThan(2 ** 20)
  })

  it.each([
    { where: 'at its beginning', at: 0 },
    { where: 'behind a hole', at: 5 * terabyte },
    { where: 'across two pieces', at: 5 * terabyte + 2 ** 20 - 6 },
    { where: 'at its end', at: 8 * terabyte - secret.length },
  ])('is refused with a secret $where', { timeout: guardMs }, async ({ at }) => {
    const start = { at: 5 * terabyte, text: 'x'.repeat(2 ** 21) }
    const tree = sparse([...(at > start.at && at < 6 * terabyte ? [start] : []), { at, text: secret }])
    await expect(inspect(tree)).rejects.toMatchObject({
      code: 'SecretFound',
      message: expect.stringContaining('/workspace/repo/huge holds a secret'),
    })
  })
})

describe.skipIf(!isHere)('a build', () => {
  let scratch: TemporaryDirectory
  let tree: string
  beforeEach(() => {
    scratch = temporaryDirectory()
    tree = join(scratch.path, 'tree')
    mkdirSync(tree)
  })
  afterEach(() => scratch[Symbol.asyncDispose]())

  const fileOfManyNames = (content: Buffer): void => {
    writeFileSync(join(tree, 'first'), content)
    for (let i = 0; i < 30_000; i++) linkSync(join(tree, 'first'), join(tree, `name-${i}`))
  }

  it('that leaves a file with 30,000 names is looked through once', { timeout: guardMs }, async () => {
    fileOfManyNames(Buffer.alloc(2 ** 26, secret.slice(1)))
    expect((await inspect(tree)).files).toBe(30_002)
  })

  it('is refused with a secret in a file of many names', { timeout: guardMs }, async () => {
    fileOfManyNames(Buffer.from(secret))
    await expect(inspect(tree)).rejects.toMatchObject({ code: 'SecretFound' })
  })

  it('that names files as its secret does not get it said', { timeout: guardMs }, async () => {
    mkdirSync(join(tree, 'there'))
    writeFileSync(join(tree, 'there', `${secret}-${secret}.txt`), '')
    const hidden = '*'.repeat(secret.length)
    await expect(inspect(tree)).rejects.toMatchObject({
      code: 'SecretFound',
      message: expect.stringContaining(`/workspace/repo/there/${hidden}-${hidden}.txt holds a secret`),
    })
  })
})
