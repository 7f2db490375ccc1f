import { expect, it } from 'vitest'
import { CommitMemory } from './commit-memory.js'

it('asks once for each question about a commit, and again after a failure', async () => {
  const memory = new CommitMemory()
  let asked = 0
  const ask = (commit: string, path: string): Promise<number> => memory.get(commit, [path], async () => ++asked)
  expect([await ask('c1', 'a'), await ask('c1', 'a'), await ask('c1', 'b'), await ask('c2', 'a')]).toEqual([1, 1, 2, 3])
  const failing = (): Promise<number> => memory.get('c3', [], () => Promise.reject(new Error('no such commit')))
  await expect(failing()).rejects.toThrow('no such commit')
  expect(await memory.get('c3', [], async () => 'there now')).toBe('there now')
})

it('forgets what was not asked for the longest time', async () => {
  const memory = new CommitMemory()
  const asked: string[] = []
  const ask = (commit: string): Promise<string> =>
    memory.get(commit, [], async () => {
      asked.push(commit)
      return commit
    })
  await ask('first')
  await ask('second')
  for (let index = 0; index < 499; index += 1) {
    await ask('first')
    await ask(`other ${index}`)
  }
  asked.length = 0
  await ask('first')
  await ask('second')
  expect(asked).toEqual(['second'])
})
