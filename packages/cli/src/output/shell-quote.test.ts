import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { shellQuote } from './shell-quote.js'

it.each(['plain', '/a/b-c.d', 'two words', "it's", '$HOME `x` "y"', '', '*', '~', 'a\nb', '-n'])(
  'a shell reads %j back as it was',
  (word) => {
    const printed = execFileSync('/bin/sh', ['-c', `printf %s ${shellQuote(word)}`], { encoding: 'utf8' })
    expect(printed).toBe(word === '-n' ? '-n' : word)
  },
)

it('leaves what needs no quotes as it is', () => {
  expect(shellQuote('corral/task-1')).toBe('corral/task-1')
})
