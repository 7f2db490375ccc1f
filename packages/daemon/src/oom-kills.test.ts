import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { countOomKills } from './oom-kills.js'

const directory = mkdtempSync(join(tmpdir(), 'corral-oom-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

it.each<[string, string[], number | undefined]>([
  ['control groups of version 2', ['low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n'], 2],
  ['control groups of version 1', ['oom_kill_disable 0\nunder_oom 0\noom_kill 7\n'], 7],
  ['the first file that has them', ['nothing here\n', 'oom_kill 1\n', 'oom_kill 5\n'], 1],
  ['nowhere', [], undefined],
])('kills are counted by %s', async (name, contents, expected) => {
  const files = contents.map((content, index) => {
    const file = join(directory, `${name} ${index}`)
    writeFileSync(file, content)
    return file
  })
  expect(await countOomKills([join(directory, 'absent'), ...files])).toBe(expected)
})
