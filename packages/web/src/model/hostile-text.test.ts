import { describe, expect, it } from 'vitest'
import { ansiSpans, plainText } from './ansi.js'
import { markdownTokens } from './markdown-tokens.js'

const guardMs = 60_000
const escapeCode = '\u001b'

describe('output of a program', () => {
  it.each<[string, string, number]>([
    ['one line without an end', 'a'.repeat(300_000), 300_000],
    ['returns without an end', '\r'.repeat(300_000), 0],
    ['titles that never end', `${escapeCode}]`.repeat(150_000), 0],
    ['an escape of numbers without an end', `${escapeCode}[${'1;'.repeat(150_000)}`, 300_001],
  ])('that is %s does not hold up the page', { timeout: guardMs }, (_, text, letters) => {
    expect(plainText(text)).toHaveLength(letters)
  })

  it.each<[string, string, string]>([
    ['is replaced by what follows a return', 'one\rtwo', 'two'],
    ['stays where a return is its end', 'one\r', 'one'],
    ['stays where returns end its line', 'one\r\r\ntwo', 'one\ntwo'],
    ['is replaced in its own line only', 'one\nold\rnew\nthree', 'one\nnew\nthree'],
    ['keeps the last of many', 'a\rb\rc\r\n', 'c\n'],
  ])('%s', (_, text, shown) => {
    expect(ansiSpans(text).map((span) => span.text)).toEqual([shown])
  })
})

describe('Markdown of an agent', () => {
  it.each<[string, string]>([
    ['quotes in quotes without an end', '>'.repeat(20_000)],
    ['quotes in quotes, with spaces', ' > >'.repeat(10_000)],
    ['lists in lists on one line', '1. '.repeat(20_000)],
    ['lists in lists, line by line', Array.from({ length: 300 }, (_, i) => `${'  '.repeat(i)}- a`).join('\n')],
    ['marks of emphasis without an end', '_a'.repeat(50_000)],
    ['links in links', '![a](b'.repeat(20_000)],
    ['a table of a hundred million cells', `${'|a'.repeat(9_000)}|\n${'|-'.repeat(9_000)}|\n${'|b\n'.repeat(9_000)}`],
    ['a megabyte of words', 'word '.repeat(200_000)],
  ])('that is %s is shown as it is', { timeout: guardMs }, (_, text) => {
    expect(markdownTokens(text)).toBeUndefined()
  })

  it.each<[string, string, string[]]>([
    ['a heading and a list', '# One\n\n- a\n  - b\n', ['heading', 'space', 'list']],
    ['a table', '| a | b |\n|---|---|\n| 1 | 2 |\n', ['table']],
    ['a long answer', '**Done.** See `a.ts`.\n\n'.repeat(400), Array(800).fill('x')],
  ])('with %s is read', (_, text, types) => {
    const tokens = markdownTokens(text) ?? []
    expect(tokens).toHaveLength(types.length)
    if (types[0] !== 'x') expect(tokens.map((token) => token.type)).toEqual(types)
  })
})
