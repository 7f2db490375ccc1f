import { expect, it } from 'vitest'
import { refusedWords } from './refused-words.js'

it.each([
  {
    entry: { host: 'packages.example.com', reason: 'NotAllowed' as const, count: 1 },
    says: 'tried packages.example.com; allow it with --allow packages.example.com:443',
  },
  {
    entry: { host: 'a.example', port: 8080, reason: 'NotAllowed' as const, count: 3 },
    says: 'tried a.example:8080 (3 times); allow it with --allow a.example:8080',
  },
  {
    entry: { host: 'gone.example', port: 443, reason: 'Unresolved' as const, count: 2 },
    says: 'tried gone.example:443 (2 times): it is allowed, but DNS has no such name',
  },
])('says: $says', ({ entry, says }) => {
  expect(refusedWords({ refused: [entry], repo: '/r' })).toEqual([says])
})

it('names the process, and the grant where a file of the repository counts', () => {
  const refused = [{ host: 'cdn.example', reason: 'NotAllowed' as const, count: 1, process: 'node install.mjs' }]
  const words = refusedWords({ refused, repo: '/my repo', environment_file: '.corral/environment.yaml' })
  expect(words).toEqual([
    "tried cdn.example by node install.mjs; allow it with --allow cdn.example:443, or for its environment: corral env grant '/my repo' cdn.example:443",
  ])
})
