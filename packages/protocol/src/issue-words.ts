import type * as z from 'zod'

type Issue = z.core.$ZodIssue

const typeWords: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  nan: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
}

/** What is wrong with a value, one line a problem, in words for people who never saw the schema: `task: must not be empty`. */
export function issueWords(
  issues: readonly Issue[],
  root: string,
  /** The fields there are in the object at a path; those that are nearly spelled like one that is not are named then. */
  fieldsAt: (path: readonly PropertyKey[]) => readonly string[] = () => [],
): string[] {
  return issues
    .flatMap(meantForm)
    .map((issue) => `${nameOf(issue.path, root)}: ${wordsOf(issue)}${meantField(issue, fieldsAt)}`)
}

/** The problems of the one form whose type fits: the others were not meant. */
function meantForm(issue: Issue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const fitting = issue.errors.filter((form) => form.length > 0 && !form.some(isOtherType))
  const [form] = fitting
  if (!form || fitting.length > 1) return [issue]
  return form.flatMap((each) => meantForm({ ...each, path: [...issue.path, ...each.path] }))
}

const isOtherType = (issue: Issue): boolean => issue.code === 'invalid_type' && issue.path.length === 0

function meantField(issue: Issue, fieldsAt: (path: readonly PropertyKey[]) => readonly string[]): string {
  if (issue.code !== 'unrecognized_keys') return ''
  const fields = fieldsAt(issue.path)
  const meant = issue.keys.slice(0, shownKeys).flatMap((key) => fields.find((field) => isNear(key, field)) ?? [])
  return meant.length === 0 ? '' : `; did you mean ${meant.map((field) => `"${field}"`).join(', ')}?`
}

/** Whether the two differ in case and punctuation, or in two letters at most and in fewer than half of them. */
function isNear(written: string, field: string): boolean {
  const [a, b] = [written, field].map((name) => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')) as [string, string]
  return (
    a === b || (a.length <= field.length + 2 && b.length > 2 && editsBetween(a, b) <= Math.min(2, (b.length - 1) / 2))
  )
}

/** Letters that are added, removed, replaced, or swapped with their neighbour. */
function editsBetween(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => Array.from({ length: b.length + 1 }, (__, j) => i + j))
  const at = (i: number, j: number): number => rows[i]?.[j] ?? 0
  for (let i = 1; i <= a.length; i++)
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      rows[i]![j] = Math.min(
        at(i - 1, j) + 1,
        at(i, j - 1) + 1,
        at(i - 1, j - 1) + (isSame ? 0 : 1),
        ...(isSwapped ? [at(i - 2, j - 2) + 1] : []),
      )
    }
  return at(a.length, b.length)
}

/** `files[0].path`, as the sender would write it; `root` where the whole value is meant. */
function nameOf(path: readonly PropertyKey[], root: string): string {
  return (
    path.reduce<string>((name, part) => {
      if (typeof part === 'number') return `${name}[${part}]`
      const own = String(part).slice(0, 500)
      return name === '' ? own : `${name}.${own}`
    }, '') || root
  )
}

function wordsOf(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type': {
      const received = / received (\S+)$/.exec(issue.message)?.[1]?.toLowerCase()
      if (received === 'undefined') return 'is required'
      const expected = typeWords[issue.expected] ?? issue.expected
      const found = received === undefined ? undefined : typeWords[received]
      // A number that is not whole, or text that is no number: what was found adds nothing.
      const tells = found !== undefined && found !== expected && !(expected.endsWith('number') && found === 'a number')
      return tells ? `must be ${expected}, not ${found}` : `must be ${expected}`
    }
    case 'too_small':
      if (sizeWord(issue.origin) === undefined) return `must be at least ${issue.minimum}`
      if (issue.minimum === 1) return 'must not be empty'
      return `must have at least ${issue.minimum} ${sizeWord(issue.origin)}`
    case 'too_big':
      if (sizeWord(issue.origin) === undefined) return `must be at most ${issue.maximum}`
      return `must have at most ${issue.maximum} ${sizeWord(issue.origin)}`
    case 'unrecognized_keys':
      return `there is no field ${fewOf(issue.keys)}`
    case 'invalid_value':
      return `must be ${oneOf(issue.values)}`
    case 'invalid_union': {
      const { options } = issue as { options?: readonly unknown[] }
      if (options) return `must be ${oneOf(options)}`
      const types = issue.errors.flat().flatMap((each) => (isOtherType(each) ? [wordsOf(each)] : []))
      const [words = ''] = types
      if (types.length < issue.errors.length) return 'has none of the forms that are allowed here'
      const forms = [...new Set(types.map((each) => each.replace(/^must be |, not .*$/g, '')))]
      return `must be ${forms.join(' or ')}${/, not .*$/.exec(words)?.[0] ?? ''}`
    }
    case 'invalid_key':
      return `its name ${issue.issues[0] ? wordsOf(issue.issues[0]) : 'is not allowed'}`
    case 'invalid_format':
      // Our own patterns come with a message; the ones built in are named by their format.
      return issue.message.startsWith('Invalid') ? `is not a valid ${issue.format}` : issue.message
    default:
      return issue.message
  }
}

/** A value may have thousands of fields that are none: they would all be compared, sent and kept. */
const shownKeys = 10

function fewOf(keys: readonly string[]): string {
  const shown = keys.slice(0, shownKeys).map((key) => `"${key.slice(0, 100)}"`)
  return `${shown.join(', ')}${keys.length > shownKeys ? `, and ${keys.length - shownKeys} more` : ''}`
}

function sizeWord(origin: string): string | undefined {
  if (origin === 'string') return 'characters'
  return origin === 'array' || origin === 'set' || origin === 'map' ? 'items' : undefined
}

function oneOf(values: readonly unknown[]): string {
  const words = values.map(String)
  // Of "1" and 1 only the latter is right, and both are shown as 1.
  if (words.length === 1) return typeof values[0] === 'number' ? `the number ${words[0]}` : `${words[0]}`
  return `one of ${words.join(', ')}`
}
