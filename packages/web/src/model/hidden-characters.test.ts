import { describe, expect, it } from 'vitest'
import { plainText } from './ansi.js'
import { codePieces, hasHidden, revealed } from './hidden-characters.js'

describe('hidden characters of prose', () => {
  it.each<[string, string, string]>([
    ['an override that turns text around', 'a\u202eb', 'a[U+202E]b'],
    ['an isolate', '\u2066x\u2069', '[U+2066]x[U+2069]'],
    ['a space without width', 'pass\u200bword', 'pass[U+200B]word'],
    ['letters of the tag block, which models read', `hi${String.fromCodePoint(0xe0041)}`, 'hi[U+E0041]'],
    ['a byte order mark', '\ufeffx', '[U+FEFF]x'],
  ])('%s shows its name', (_, given, expected) => {
    expect(revealed(given)).toBe(expected)
    expect(plainText(given)).toBe(expected)
  })

  it.each([
    ['Arabic with a mark of its direction', '\u0633\u200f!'],
    ['an emoji of several', '\u{1f469}\u200d\u{1f4bb}'],
    ['a Persian word', '\u0645\u06cc\u200c\u062e'],
    ['a soft hyphen', 'co\u00adop'],
  ])('%s stays as it is', (_, text) => {
    expect(revealed(text)).toBe(text)
  })
})

describe('hidden characters of code', () => {
  it('are pieces of their own that say what they do', () => {
    expect(codePieces('if (a\u202e) // \u200b')).toEqual([
      { text: 'if (a' },
      { text: 'U+202E', hidden: 'changes the order in which the text around it is shown' },
      { text: ') // ' },
      { text: 'U+200B', hidden: 'is part of the file and takes no room' },
    ])
  })

  it('are found, marks of direction too, each time anew', () => {
    expect([hasHidden('a\u200e'), hasHidden('a\u200e'), hasHidden('plain'), hasHidden('')]).toEqual([
      true,
      true,
      false,
      false,
    ])
    expect(codePieces('plain')).toEqual([{ text: 'plain' }])
  })
})
