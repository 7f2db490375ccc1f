import type { KubeObject } from '@corral/resources'
import { badRequest } from '../errors/api-error.js'

interface Requirement {
  readonly key: string
  readonly operator: '=' | '!=' | 'in' | 'notin' | 'exists' | 'absent' | '>' | '<'
  readonly values: readonly string[]
}

export type LabelMatcher = (labels: Readonly<Record<string, string>>) => boolean

/** A parsed label selector; 400 when it cannot be parsed. An empty one is undefined: everything matches. */
export function parseLabelSelector(text: string | null): LabelMatcher | undefined {
  if (text === null || text.trim() === '') return undefined
  const requirements = new Parser(text).parse()
  return (labels) => requirements.every((requirement) => matches(requirement, labels))
}

/** Whether the object's labels match. */
export const matchesLabels = (matcher: LabelMatcher, object: KubeObject): boolean =>
  matcher(object.metadata?.labels ?? {})

function matches(requirement: Requirement, labels: Readonly<Record<string, string>>): boolean {
  const value = Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined
  switch (requirement.operator) {
    case 'exists':
      return value !== undefined
    case 'absent':
      return value === undefined
    case '=':
    case 'in':
      return value !== undefined && requirement.values.includes(value)
    case '!=':
    case 'notin':
      return value === undefined || !requirement.values.includes(value)
    case '>':
    case '<': {
      const number = Number(value)
      if (value === undefined || value === '' || !Number.isInteger(number)) return false
      const bound = Number(requirement.values[0])
      return requirement.operator === '>' ? number > bound : number < bound
    }
  }
}

const KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/
const VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/

class Parser {
  private readonly tokens: string[]
  private position = 0

  constructor(text: string) {
    this.tokens = text.match(/[(),!]|[=!<>]=?|[^\s(),!=<>]+/g) ?? []
    // `!` directly before `=` is one operator; anywhere else it negates.
    this.tokens = joinNotEqual(this.tokens)
  }

  parse(): Requirement[] {
    const requirements = [this.requirement()]
    while (this.peek() !== undefined) {
      this.expect(',')
      requirements.push(this.requirement())
    }
    return requirements
  }

  private requirement(): Requirement {
    if (this.peek() === '!') {
      this.position++
      return { key: this.key(), operator: 'absent', values: [] }
    }
    const key = this.key()
    const operator = this.peek()
    if (operator === undefined || operator === ',') return { key, operator: 'exists', values: [] }
    this.position++
    switch (operator) {
      case '=':
      case '==':
        return { key, operator: '=', values: [this.value()] }
      case '!=':
        return { key, operator: '!=', values: [this.value()] }
      case 'in':
      case 'notin':
        return { key, operator, values: this.set() }
      case '>':
      case '<': {
        const value = this.value()
        if (!/^-?\d+$/.test(value)) throw this.failure(`for 'Gt', 'Lt' operators, the value must be an integer`)
        return { key, operator, values: [value] }
      }
      default:
        throw this.failure(`found '${operator}', expected: in, notin, =, ==, !=, gt, lt`)
    }
  }

  private key(): string {
    const key = this.tokens[this.position++]
    if (key === undefined || !KEY.test(key)) {
      throw this.failure(`found '${key ?? ''}', expected: !, identifier, or 'end of string'`)
    }
    return key
  }

  private value(): string {
    const token = this.peek()
    if (token === undefined || token === ',') return ''
    if (!VALUE.test(token)) throw this.failure(`found '${token}', expected: identifier`)
    this.position++
    return token
  }

  private set(): string[] {
    this.expect('(')
    const values: string[] = []
    while (true) {
      const token = this.peek()
      if (token === undefined) throw this.failure("found '', expected: ',' or ')'")
      if (token === ')' || token === ',') {
        // An empty place, as in `in ()` or `in (a,)`, stands for the empty value.
        values.push('')
      } else {
        if (!VALUE.test(token)) throw this.failure(`found '${token}', expected: identifier`)
        values.push(token)
        this.position++
      }
      if (this.peek() === ')') break
      this.expect(',')
    }
    this.expect(')')
    return values
  }

  private expect(token: string): void {
    const found = this.tokens[this.position++]
    if (found !== token) throw this.failure(`found '${found ?? ''}', expected: '${token}'`)
  }

  private peek(): string | undefined {
    return this.tokens[this.position]
  }

  private failure(why: string): Error {
    return badRequest(`unable to parse requirement: ${why}`)
  }
}

function joinNotEqual(tokens: readonly string[]): string[] {
  const result: string[] = []
  for (const token of tokens) {
    if ((token === '=' || token === '==') && result.at(-1) === '!') result[result.length - 1] = '!='
    else result.push(token)
  }
  return result
}
