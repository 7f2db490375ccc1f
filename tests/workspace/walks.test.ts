import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

it('the walks of ARCHITECTURE.md lead through files that exist, each once', () => {
  const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
  const walks = page.slice(page.indexOf('## Two walks'))
  const files = [...walks.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, file = '']) => file)
  expect(files.length).toBeGreaterThan(20)
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
  expect(new Set(files).size).toBe(files.length)
})
