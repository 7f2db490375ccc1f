import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { corralProgram, temporaryDirectory } from '@corral/testing'
import { afterAll, describe, expect, it } from 'vitest'

const run = promisify(execFile)
const scratch = temporaryDirectory()
afterAll(() => scratch[Symbol.asyncDispose]())

/** The bundle's program elsewhere, with other compiled code beside it. */
function copy(name: string, compiled: Buffer | undefined): string {
  const from = dirname(corralProgram)
  const to = join(scratch.path, name)
  mkdirSync(to)
  for (const file of ['corral.js', 'main.cjs', 'package.json']) copyFileSync(join(from, file), join(to, file))
  if (compiled) writeFileSync(join(to, 'main.cjs.compiled'), compiled)
  return join(to, 'corral.js')
}

const built = (): Buffer => readFileSync(join(dirname(corralProgram), 'main.cjs.compiled'))

describe('the program with', () => {
  it.each([
    ['the code that was compiled with it', built],
    ['no compiled code', () => undefined],
    ['half of the compiled code', () => built().subarray(0, 100_000)],
    ['garbage for compiled code', () => Buffer.from('this is no code')],
    ['an empty file for compiled code', () => Buffer.alloc(0)],
  ])('%s starts', async (name, compiled) => {
    const program = copy(name.replaceAll(' ', '-'), compiled())
    const { stdout } = await run(process.execPath, [program, '--version'], { timeout: 240_000 })
    expect(stdout.trim()).toMatch(/^\d+\.\d+\.\d+/)
  })
})
