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
    says: 'tried gone.example:443 (2 times): it is allowed, but nobody knows this name',
  },
])('says: $says', ({ entry, says }) => {
  expect(refusedWords([entry])).toEqual([says])
})
