import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { letGo } from './terminal.js'

it('lets go of an input that is no socket, as standard input from a file or /dev/null is', () => {
  const input = Readable.from(['text'])
  expect('unref' in input).toBe(false)
  letGo(input)
  expect(input.isPaused()).toBe(true)
})
