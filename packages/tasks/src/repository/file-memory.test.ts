import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { FileMemory } from './file-memory.js'

let directory: string
let config: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-known-'))
  config = join(directory, 'config')
  writeFileSync(config, 'first')
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const owner = process.geteuid?.() ?? 0
const later = (): number => Date.now() + 60_000

/** How often the files were read for two questions, with something done in between. */
async function readings(
  between: () => void,
  { nowMs = later, owner: of = owner }: { nowMs?: () => number; owner?: number } = {},
): Promise<number> {
  const memory = new FileMemory<number>(nowMs)
  let count = 0
  const ask = (): Promise<number> => memory.get([directory, config], { owner: of }, async () => ++count)
  await ask()
  between()
  expect(await ask()).toBe(count)
  return count
}

it.each<{ when: string; between: () => void }>([
  { when: 'nothing changed', between: () => {} },
  { when: 'something came into a directory', between: () => mkdirSync(join(directory, 'refs')) },
])('files are read once when $when', async ({ between }) => {
  expect(await readings(between)).toBe(1)
})

it.each<{ when: string; between: () => void }>([
  { when: 'a file was written', between: () => writeFileSync(config, 'other') },
  { when: 'a file went away', between: () => rmSync(config) },
])('files are read again when $when', async ({ between }) => {
  expect(await readings(between)).toBe(2)
})

it('a file of this very moment is read again: it may be written without another time', async () => {
  expect(await readings(() => {}, { nowMs: Date.now })).toBe(2)
})

it('nothing is kept of files of another user, of which git has to say whether it trusts them', async () => {
  expect(await readings(() => {}, { owner: owner + 1 })).toBe(2)
})
