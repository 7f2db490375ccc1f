import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readFiles, readPrompt } from './task-inputs.js'

let root: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'corral-inputs-'))
  mkdirSync(join(root, 'repo', 'sub'), { recursive: true })
  writeFileSync(join(root, 'repo', 'sub', 'in.txt'), 'in')
  writeFileSync(join(root, 'out.sh'), 'out')
  chmodSync(join(root, 'out.sh'), 0o755)
  writeFileSync(join(root, 'a:b'), 'colon')
  writeFileSync(join(root, 'binary'), Buffer.from([0xff, 0xfe, 0]))
  writeFileSync(join(root, 'prompt.md'), 'Do it.\n')
})
afterAll(() => rmSync(root, { recursive: true, force: true }))
const at = (name: string): string => resolve(root, name)

describe('--file', () => {
  it.each([
    {
      what: 'a file of the repository keeps its place',
      file: 'repo/sub/in.txt',
      is: { path: 'sub/in.txt', content: 'in' },
    },
    {
      what: 'another goes to the top, executable as it was',
      file: 'out.sh',
      is: { path: 'out.sh', content: 'out', mode: '0755' },
    },
    { what: 'a destination is taken', file: 'repo/sub/in.txt:x/y.txt', is: { path: 'x/y.txt', content: 'in' } },
    { what: 'bytes that are no text', file: 'binary', is: { path: 'binary', content: '//4A', encoding: 'base64' } },
  ])('$what', ({ file, is }) => {
    expect(readFiles([at(file)], at('repo'))).toEqual([is])
  })

  it('takes a name with a colon that exists as it stands', () => {
    expect(readFiles([`${at('a:b')}:c`], at('repo'))).toEqual([{ path: 'c', content: 'colon' }])
  })

  it.each([
    { what: 'a missing file', file: 'none', says: /^--file .*none: there is no such file/ },
    { what: 'a directory', file: 'repo', says: /it is a directory/ },
    { what: 'one without end', file: '/dev/zero', says: /zero: it is larger than 16777216 bytes/ },
    { what: 'a place outside', file: 'out.sh:../x', says: /"\.\.\/x" is no place inside/ },
    { what: 'a place in .git', file: 'out.sh:.git/hooks/x', says: /is no place inside/ },
  ])('refuses $what with exit code 2', ({ file, says }) => {
    expect(() => readFiles([at(file)], at('repo'))).toThrow(
      expect.objectContaining({ message: expect.stringMatching(says), exitCode: 2 }),
    )
  })
})

describe('the prompt', () => {
  it('comes from the argument or from a file', async () => {
    expect(await readPrompt('Do it', undefined)).toBe('Do it')
    expect(await readPrompt(undefined, at('prompt.md'))).toBe('Do it.\n')
  })
  it.each([
    { what: 'both', argument: 'x', file: 'prompt.md', says: /not both/ },
    { what: 'neither', argument: undefined, file: undefined, says: /what shall the agent do/ },
    { what: 'nothing but spaces', argument: ' ', file: undefined, says: /is empty/ },
    {
      what: 'a file without end',
      argument: undefined,
      file: '/dev/zero',
      says: /it is larger than 16777216 bytes/,
    },
    { what: 'a file in another encoding', argument: undefined, file: 'binary', says: /binary is not UTF-8 text/ },
    { what: 'a file that is not there', argument: undefined, file: 'none', says: /--prompt-file .*no such file/ },
  ])('is refused when it is $what', async ({ argument, file, says }) => {
    await expect(readPrompt(argument, file && at(file))).rejects.toMatchObject({
      message: expect.stringMatching(says),
      exitCode: 2,
    })
  })
})
