import { errorCodes, taskCauses } from '@corral/protocol'
import type { Command } from 'commander'
import { expect, it } from 'vitest'
import { buildProgram } from './program.js'

const program = buildProgram()
const answersTo = (command: Command, word: string): Command | undefined =>
  command.commands.find((each) => each.name() === word || each.aliases().includes(word))

it.each([
  { known: 'list', words: ['ls'] },
  { known: 'rm', words: ['remove', 'delete'] },
  { known: 'remove', words: ['rm', 'delete'] },
  { known: 'get', words: ['show'] },
  { known: 'show', words: ['get'] },
])('every noun that knows `$known` knows $words too', ({ known, words }) => {
  const nouns = program.commands.filter((noun) => answersTo(noun, known))
  expect(nouns.length).toBeGreaterThan(2)
  for (const noun of nouns)
    for (const word of words)
      expect(`${noun.name()} ${word}: ${answersTo(noun, word)?.name()}`).toBe(
        `${noun.name()} ${word}: ${answersTo(noun, known)?.name()}`,
      )
})

/** The commands of a hint, as a person would copy them. */
const commandsOf = (hint: string): string[] =>
  [...hint.matchAll(/`corral ([^`]+)`/g)].map(([, command = '']) => command)

const hints = Object.entries({ ...errorCodes, ...taskCauses }).flatMap(([code, { hint }]) =>
  commandsOf(hint).map((command) => ({ code, command })),
)

it.each(hints)('the hint of $code, `corral $command`, has every argument it needs', ({ command }) => {
  const words = command.split(' ')
  let found: Command = program
  for (let next = answersTo(found, words[0] ?? ''); next; next = answersTo(found, words[0] ?? '')) {
    found = next
    words.shift()
  }
  expect(found).not.toBe(program)
  const given = words.filter((word) => !word.startsWith('-'))
  expect(given.length).toBeGreaterThanOrEqual(found.registeredArguments.filter(({ required }) => required).length)
})
