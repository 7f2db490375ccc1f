/**
 * Characters a reader does not see, though a compiler or a model reads them: some turn the order of the text around, so that
 * code looks like other code, some take no room at all.
 */
const turning = '\\u202a-\\u202e\\u2066-\\u2069'
const invisible = '\\u200b\\u2060-\\u2064\\u206a-\\u206f\\ufeff\\u{e0000}-\\u{e007f}'
/** Arabic and Hebrew prose needs these, and a soft hyphen is a matter of print; code needs none of them. */
const ofProse = '\\u00ad\\u061c\\u200e\\u200f'

const inProse = new RegExp(`[${turning}${invisible}]`, 'gu')
const inCode = new RegExp(`[${turning}${invisible}${ofProse}]`, 'gu')
const anyInCode = new RegExp(inCode.source, 'u')

export interface CodePiece {
  readonly text: string
  /** What a hidden character does; `text` is its name then, such as `U+202E`. */
  readonly hidden?: string
}

/** Prose with the names of hidden characters in their places. */
export const revealed = (text: string): string => text.replace(inProse, (character) => `[${nameOf(character)}]`)

export const hasHidden = (code: string): boolean => anyInCode.test(code)

/** Code in pieces, hidden characters by their names. */
export function codePieces(code: string): CodePiece[] {
  const pieces: CodePiece[] = []
  let at = 0
  for (const { index, 0: character } of code.matchAll(inCode)) {
    if (index > at) pieces.push({ text: code.slice(at, index) })
    pieces.push({ text: nameOf(character), hidden: effectOf(character) })
    at = index + character.length
  }
  if (at < code.length) pieces.push({ text: code.slice(at) })
  return pieces
}

function nameOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

function effectOf(character: string): string {
  return /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(character)
    ? 'changes the order in which the text around it is shown'
    : 'is part of the file and takes no room'
}
