import type { LabelSelector } from './generated/core-types.js'
import { labelValueError, qualifiedNameError } from './names.js'

export type LabelOperator = 'exists' | 'notExists' | 'in' | 'notIn' | 'greaterThan' | 'lessThan'

/** One condition on an object's labels; a selector is a list of them, all of which must hold. */
export interface LabelRequirement {
  readonly key: string
  readonly operator: LabelOperator
  readonly values: readonly string[]
}

/** Text that is no selector. `code` is the reason an API server answers with. */
export class SelectorError extends Error {
  override readonly name: string = 'SelectorError'
  readonly code = 'BadRequest'
}

/** Reads `a=b,c in (d,e),!f`. The empty text selects everything. Throws a `SelectorError`. */
export function parseLabelSelector(text: string): LabelRequirement[] {
  const tokens = tokenize(text)
  const requirements: LabelRequirement[] = []
  let at = 0
  const next = (): string | undefined => tokens[at++]
  const fail = (problem: string): never => {
    throw new SelectorError(`unable to parse requirement: ${problem}`)
  }
  while (at < tokens.length) {
    requirements.push(
      checked(
        requirement(next, () => tokens[at], fail),
        fail,
      ),
    )
    if (at < tokens.length && next() !== ',') fail(`found '${tokens[at - 1]}', expected: ',' or 'end of string'`)
    else if (at === tokens.length && tokens.at(-1) === ',') fail("found '', expected: identifier after ','")
  }
  return requirements
}

/** Whether labels satisfy every requirement. `!=` and `notin` also hold where the key is absent. */
export function matchesRequirements(
  requirements: readonly LabelRequirement[],
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  return requirements.every((requirement) => matches(requirement, labels ?? {}))
}

/** The requirements of a selector object. An empty one selects everything. */
export function requirementsOf(selector: LabelSelector): LabelRequirement[] {
  const operators: Record<string, LabelOperator> = {
    In: 'in',
    NotIn: 'notIn',
    Exists: 'exists',
    DoesNotExist: 'notExists',
  }
  const exact = Object.entries(selector.matchLabels ?? {}).map(
    ([key, value]): LabelRequirement => ({ key, operator: 'in', values: [value] }),
  )
  const expressions = (selector.matchExpressions ?? []).map(({ key, operator, values }): LabelRequirement => {
    const known = operators[operator]
    if (!known) throw new SelectorError(`"${operator}" is not a valid label selector operator`)
    return { key, operator: known, values: values ?? [] }
  })
  return [...exact, ...expressions]
}

/** Whether labels satisfy a selector object; an absent selector matches nothing. */
export function matchesLabelSelector(
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  return selector !== undefined && matchesRequirements(requirementsOf(selector), labels)
}

/** The text form of requirements, as a query parameter takes it. */
export function formatRequirements(requirements: readonly LabelRequirement[]): string {
  return requirements.map(formatRequirement).join(',')
}

function formatRequirement({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case 'exists':
      return key
    case 'notExists':
      return `!${key}`
    case 'in':
      return values.length === 1 ? `${key}=${values[0]}` : `${key} in (${[...values].sort().join(',')})`
    case 'notIn':
      return values.length === 1 ? `${key}!=${values[0]}` : `${key} notin (${[...values].sort().join(',')})`
    case 'greaterThan':
      return `${key}>${values[0]}`
    case 'lessThan':
      return `${key}<${values[0]}`
  }
}

function matches({ key, operator, values }: LabelRequirement, labels: Readonly<Record<string, string>>): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined
  switch (operator) {
    case 'exists':
      return value !== undefined
    case 'notExists':
      return value === undefined
    case 'in':
      return value !== undefined && values.includes(value)
    case 'notIn':
      return value === undefined || !values.includes(value)
    case 'greaterThan':
      return isInteger(value) && BigInt(value) > BigInt(values[0] ?? '0')
    case 'lessThan':
      return isInteger(value) && BigInt(value) < BigInt(values[0] ?? '0')
  }
}

function tokenize(text: string): string[] {
  return text.match(/==|!=|[=!<>(),]|[^\s=!<>(),]+/g) ?? []
}

type Fail = (problem: string) => never

function requirement(next: () => string | undefined, peek: () => string | undefined, fail: Fail): LabelRequirement {
  const first = next() ?? ''
  if (first === '!') return { key: word(next(), fail), operator: 'notExists', values: [] }
  const key = word(first, fail)
  const follower = peek()
  if (follower === undefined || follower === ',') return { key, operator: 'exists', values: [] }
  const operator = next() ?? ''
  switch (operator) {
    case '=':
    case '==':
      return { key, operator: 'in', values: [exactValue(next, peek)] }
    case '!=':
      return { key, operator: 'notIn', values: [exactValue(next, peek)] }
    case 'in':
    case 'notin':
      return { key, operator: operator === 'in' ? 'in' : 'notIn', values: valueSet(next, fail) }
    case '<':
    case '>': {
      const value = exactValue(next, peek)
      if (!isInteger(value)) fail(`for 'Gt', 'Lt' operators, the value must be an integer`)
      return { key, operator: operator === '>' ? 'greaterThan' : 'lessThan', values: [value] }
    }
    default:
      return fail(`found '${operator}', expected: in, notin, =, ==, !=, gt, lt`)
  }
}

function exactValue(next: () => string | undefined, peek: () => string | undefined): string {
  const follower = peek()
  return follower === undefined || follower === ',' ? '' : (next() ?? '')
}

function valueSet(next: () => string | undefined, fail: Fail): string[] {
  if (next() !== '(') fail(`expected: '('`)
  const values: string[] = []
  let current = ''
  for (;;) {
    const token = next()
    if (token === undefined) return fail(`found '', expected: ',' or ')'`)
    if (token === ')' || token === ',') {
      values.push(current)
      current = ''
      if (token === ')') return [...new Set(values)]
    } else if (current !== '') fail(`found '${token}', expected: ',' or ')'`)
    else current = token
  }
}

function word(token: string | undefined, fail: Fail): string {
  if (token === undefined || /^[=!<>(),]+$/.test(token)) return fail(`found '${token ?? ''}', expected: identifier`)
  return token
}

function checked(requirement: LabelRequirement, fail: Fail): LabelRequirement {
  const keyProblem = qualifiedNameError(requirement.key)
  if (keyProblem) fail(`<nil>: Invalid value: "${requirement.key}": ${keyProblem}`)
  for (const value of requirement.values) {
    const problem = labelValueError(value)
    if (problem) fail(`values[0][${requirement.key}]: Invalid value: "${value}": ${problem}`)
  }
  return requirement
}

function isInteger(value: string | undefined): value is string {
  return value !== undefined && /^-?\d+$/.test(value)
}
