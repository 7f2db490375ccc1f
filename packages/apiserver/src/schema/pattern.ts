import type { RE2JS } from 're2js'
import { type JsonSchema, someSchema } from './json-schema.js'

/** Whether a text contains a match. */
export type PatternMatcher = (text: string) => boolean

let re2: typeof RE2JS | undefined
const matchers = new Map<string, PatternMatcher>()
/** The same few patterns stand in a schema hundreds of times. */
const plainness = new Map<string, boolean>()
const MAX_CACHED = 2_000

/** Loads the RE2 engine. Safe to repeat; needed only for patterns that `isPlainPattern` refuses. */
export async function loadPatternEngine(): Promise<void> {
  re2 ??= (await import('re2js')).RE2JS
}

/** Whether a schema has a pattern for which `loadPatternEngine` must have run before it is compiled. */
export function needsPatternEngine(schema: JsonSchema): boolean {
  return someSchema(schema, (each) => each.pattern !== undefined && !isPlainPattern(each.pattern))
}

/**
 * A matcher with RE2's syntax and its linear running time. Throws the engine's syntax error for patterns RE2 refuses
 * (back-references, look-around), and an Error when the engine is needed but was not loaded.
 */
export function patternMatcher(pattern: string): PatternMatcher {
  let matcher = matchers.get(pattern)
  if (!matcher) {
    matcher = compilePattern(pattern)
    if (matchers.size >= MAX_CACHED) matchers.clear()
    matchers.set(pattern, matcher)
  }
  return matcher
}

/** The first match of a pattern in a text, under the conditions of `patternMatcher`. */
export function findPattern(pattern: string, text: string): string | undefined {
  if (isPlainPattern(pattern)) return new RegExp(pattern).exec(text)?.[0]
  const matcher = requireEngine(pattern).compile(pattern).matcher(text)
  return matcher.find() ? (matcher.group() ?? undefined) : undefined
}

function requireEngine(pattern: string): typeof RE2JS {
  if (!re2) throw new Error(`pattern engine is not loaded (needed for ${JSON.stringify(pattern)})`)
  return re2
}

function compilePattern(pattern: string): PatternMatcher {
  if (isPlainPattern(pattern)) {
    const regExp = new RegExp(pattern)
    return (text) => regExp.test(text)
  }
  const compiled = requireEngine(pattern).compile(pattern)
  return (text) => compiled.matcher(text).find()
}

/**
 * The pattern of a quantity, which stands in every definition that controller-gen made. Judged by hand: it is anchored, and
 * the letters that may follow each of its repetitions are not among those it repeats, so no text is read in two ways.
 */
const QUANTITY =
  '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$'
/** Each choice doubles the ways JavaScript's engine may try before it gives up on a text. */
const MAX_CHOICES = 8

/**
 * Whether JavaScript's engine gives RE2's answer for this pattern, in time that grows with the text's length as RE2's does:
 * only literals, positive classes, `\d`, `\w`, escaped punctuation, anchors, few alternatives, groups that are repeated only
 * where they hold no choice, and one repetition without a fixed count at most, in a pattern that is tried from the text's
 * beginning alone.
 */
export function isPlainPattern(pattern: string): boolean {
  let isPlain = plainness.get(pattern)
  if (isPlain === undefined) {
    isPlain = pattern === QUANTITY || judgePattern(pattern)
    if (plainness.size >= MAX_CACHED) plainness.clear()
    plainness.set(pattern, isPlain)
  }
  return isPlain
}

function judgePattern(pattern: string): boolean {
  const groups: { varies: boolean }[] = [{ varies: false }]
  let closed: { varies: boolean } | undefined
  let choices = 0
  let repetitions = 0
  let isAlternative = false
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i]!
    const after = closed
    closed = undefined
    if (char.charCodeAt(0) > 126) return false
    if (char === '\\') {
      if (!/[-dw.+*?()[\]{}|^$/\\_]/.test(pattern[++i] ?? '')) return false
    } else if (char === '[') {
      const end = classEnd(pattern, i)
      if (end < 0) return false
      i = end
    } else if (char === '(') {
      if (pattern[i + 1] === '?' && pattern[i + 2] !== ':') return false
      if (pattern[i + 1] === '?') i += 2
      groups.push({ varies: false })
    } else if (char === ')') {
      const group = groups.pop()
      if (!group || groups.length === 0) return false
      if (group.varies) groups.at(-1)!.varies = true
      closed = group
    } else if (char === '*' || char === '+' || char === '{') {
      if (after?.varies) return false
      groups.at(-1)!.varies = true
      let isFixed = false
      if (char === '{') {
        const bounds = /^\{\d{1,3}(,\d{0,3})?\}/.exec(pattern.slice(i))
        if (!bounds) return false
        isFixed = bounds[1] === undefined
        i += bounds[0].length - 1
      }
      if (!isFixed) repetitions += 1
      // A possessive, lazy or doubled quantifier means different things to the two engines.
      if (/[*+?{]/.test(pattern[i + 1] ?? '')) return false
    } else if (char === '?' || char === '|') {
      choices += 1
      groups.at(-1)!.varies = true
      isAlternative ||= char === '|' && groups.length === 1
      if (char === '?' && /[*+?{]/.test(pattern[i + 1] ?? '')) return false
    } else if (char === '.' || char === ']' || char === '}') return false
  }
  const isTriedOnce = pattern.startsWith('^') && !isAlternative
  const isLinear = choices <= MAX_CHOICES && (repetitions === 0 || (repetitions === 1 && isTriedOnce))
  return groups.length === 1 && isLinear && isValid(pattern)
}

function classEnd(pattern: string, start: number): number {
  if (pattern[start + 1] === '^' || pattern[start + 1] === ']') return -1
  for (let i = start + 1; i < pattern.length; i++) {
    const char = pattern[i]!
    if (char === ']') return i
    if (char === '[' || char.charCodeAt(0) > 126) return -1
    if (char === '\\' && !/[-dw.+*?()[\]{}|^$/\\_]/.test(pattern[++i] ?? '')) return -1
  }
  return -1
}

function isValid(pattern: string): boolean {
  try {
    new RegExp(pattern)
    return true
  } catch {
    return false // the RE2 engine reports the syntax error in its own words
  }
}
