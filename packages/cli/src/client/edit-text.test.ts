import { expect, it } from 'vitest'
import { editText } from './edit-text.js'

it('`project edit` without a terminal starts no vi that fills a pipe or a log with its screen', () => {
  expect(() => editText('a.yaml', 'a: 1\n', {}, false)).toThrow(
    expect.objectContaining({ exitCode: 2, hint: expect.stringContaining('--set') }),
  )
})

it('an editor that was named may be a program that needs no terminal', () => {
  const edited = editText('a.yaml', 'a: 1\n', { EDITOR: "sed -i 's/1/2/'" }, false)
  expect(edited.text).toBe('a: 2\n')
  edited.remove()
})
