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
export function issueWords(issues: readonly Issue[], root: string): string[] {
  return issues.map((issue) => `${nameOf(issue.path, root)}: ${wordsOf(issue)}`)
}

/** `files[0].path`, as the sender would write it; `root` where the whole value is meant. */
function nameOf(path: readonly PropertyKey[], root: string): string {
  return (
    path.reduce<string>((name, part) => {
      if (typeof part === 'number') return `${name}[${part}]`
      return name === '' ? String(part) : `${name}.${String(part)}`
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
      return `there is no field ${issue.keys.map((key) => `"${key.slice(0, 100)}"`).join(', ')}`
    case 'invalid_value':
      return `must be ${oneOf(issue.values)}`
    case 'invalid_union': {
      const { options } = issue as { options?: readonly unknown[] }
      return options ? `must be ${oneOf(options)}` : 'has none of the forms that are allowed here'
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

function sizeWord(origin: string): string | undefined {
  if (origin === 'string') return 'characters'
  return origin === 'array' || origin === 'set' || origin === 'map' ? 'items' : undefined
}

function oneOf(values: readonly unknown[]): string {
  const words = values.map(String)
  return words.length === 1 ? `${words[0]}` : `one of ${words.join(', ')}`
}
