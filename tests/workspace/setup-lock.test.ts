import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const module = new URL('../../scripts/setup-lock.mjs', import.meta.url).href
let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-setup-lock-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

/** A set-up that writes down when it begins and ends, and takes a moment for its work; then it ends as `end` says. */
async function setUp(name: string, end = ''): Promise<number | null> {
  const program = `
    import { appendFileSync } from 'node:fs'
    import { withSetupLock } from ${JSON.stringify(module)}
    const say = (text) => appendFileSync('log', text + '\\n')
    const work = () => {
      say('${name} begins')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30)
      say('${name} ends')
      ${end}
    }
    withSetupLock('lock', { work, onWait: () => {} })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { cwd: directory, stdio: 'inherit' })
  return await new Promise((resolve) => child.once('exit', resolve))
}

const log = (): string[] => readFileSync(join(directory, 'log'), 'utf8').trim().split('\n')

describe('set-ups of one clone', () => {
  it('come one after the other when several commands need one at once', async () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    expect(await Promise.all(names.map((name) => setUp(name)))).toEqual(names.map(() => 0))
    const lines = log()
    expect(lines).toHaveLength(10)
    for (let index = 0; index < 10; index += 2)
      expect([lines[index], lines[index + 1]]).toEqual([`${lines[index]![0]} begins`, `${lines[index]![0]} ends`])
    expect(existsSync(join(directory, 'lock'))).toBe(false)
  })

  it('leave no lock behind when they fail', async () => {
    expect(await setUp('a', 'process.exit(3)')).toBe(3)
    expect(existsSync(join(directory, 'lock'))).toBe(false)
  })

  it('do not wait for one that was killed', async () => {
    const { pid } = spawnSync(process.execPath, ['-e', '0'])
    writeFileSync(join(directory, 'lock'), String(pid))
    expect(await setUp('a')).toBe(0)
    expect(log()).toEqual(['a begins', 'a ends'])
  })
})
