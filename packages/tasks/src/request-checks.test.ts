import type { CompleteTaskRequest } from '@corral/protocol'
import { describe, expect, it } from 'vitest'
import { checkRequest } from './request-checks.js'

const check = (paths: string[]): Promise<void> => {
  const files = paths.map((path) => ({ path, content: '' }))
  const request = { repo: 'https://git.example.com/a/b.git', task: 't', files } as unknown as CompleteTaskRequest
  return checkRequest(request, {} as Parameters<typeof checkRequest>[1])
}

describe('files of a request that cannot all be written are refused before a sandbox is claimed', () => {
  it.each([
    { what: 'one place twice', paths: ['a/b', 'c', 'a/b'], says: 'files: "a/b" is given twice' },
    {
      what: 'a file where another needs a directory',
      paths: ['a/b/c/d', 'x', 'a/b'],
      says: 'files: "a/b" cannot be a file and the directory of "a/b/c/d"',
    },
  ])('$what', async ({ paths, says }) => {
    await expect(check(paths)).rejects.toMatchObject({ code: 'Invalid', message: says })
  })

  it.each([{ paths: [] }, { paths: ['a', 'b/a', 'b/c', 'ab'] }])('$paths are taken', async ({ paths }) => {
    await expect(check(paths)).resolves.toBeUndefined()
  })
})
