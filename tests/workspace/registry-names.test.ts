import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { agentAdapters, providers } from '@corral/agents'
import { expect, it } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

/** Everything about one agent or provider lies in its folder; the two registries name each once. */
const isHome = (path: string): boolean =>
  /^packages\/agents\/src\/(agents|providers)\/[a-z]+\//.test(path) ||
  /^packages\/agents\/src\/.*-registry\.ts$/.test(path)

/** Words that are also names of agents: the code may use them for what they usually mean. */
const ordinaryWords = new Set(['command', 'acp'])

const names = [...new Set([...agentAdapters.keys(), ...providers.keys()])].filter((name) => !ordinaryWords.has(name))

function sources(): string[] {
  return readdirSync(join(root, 'packages'), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /(?<!\.test|\.test-suite)\.ts$/.test(entry.name))
    .map((entry) =>
      relative(root, join(entry.parentPath ?? entry.path, entry.name))
        .split(sep)
        .join('/'),
    )
    .filter((path) => /^packages\/[^/]+\/src\//.test(path) && !path.startsWith('packages/testing/'))
    .filter((path) => !path.startsWith('packages/resources/src/generated/'))
}

/** The lines of a file without comments, examples in help texts left in: those go stale first. */
function codeLines(path: string): string[] {
  const text = readFileSync(join(root, path), 'utf8').replace(/\/\*[\s\S]*?\*\//g, (comment) =>
    comment.replace(/[^\n]/g, ''),
  )
  return text.split('\n').map((line) => line.replace(/(^|\s)\/\/.*$/, ''))
}

it('no code outside an agent’s or provider’s own folder knows its name: adding one is a folder and a line', () => {
  const pattern = new RegExp(`\\b(${names.join('|')})\\b`, 'i')
  const found = sources()
    .filter((path) => !isHome(path))
    .flatMap((path) =>
      codeLines(path).flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
    )
  expect(found).toEqual([])
})

it('no code compares the name of an agent', () => {
  const found = sources()
    .filter((path) => !isHome(path))
    .flatMap((path) =>
      codeLines(path).flatMap((line, index) =>
        /(agent|adapter)(\.name)? ?[!=]== ?'/.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [],
      ),
    )
  expect(found).toEqual([])
})
