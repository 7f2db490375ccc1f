import type { ASTNode, Environment, Optional } from '@marcbachmann/cel-js'
import { findPattern, patternMatcher } from '../schema/pattern.js'

/** A compiled expression: variables in, value out; throws for evaluation errors. */
export interface CelExpression {
  (variables: Readonly<Record<string, unknown>>): unknown
  readonly ast: ASTNode
}

/** What is known of `self` before it has a value; `dyn` for everything that is no plain scalar. */
export type SelfType = 'string' | 'int' | 'double' | 'bool' | 'dyn'

type Engine = { readonly Environment: typeof Environment; readonly Optional: typeof Optional }

let engine: Engine | undefined
/** What an expression is about. */
export interface CelVariables {
  readonly self: SelfType
  /** Whether `oldSelf` says by itself that it may be missing. */
  readonly isOldOptional: boolean
}

/** One per kind of variables; the engine checks comparisons and calls against them. */
const environments = new Map<string, Environment>()

/** Loads the CEL engine. Safe to repeat. */
export async function loadCelEngine(): Promise<void> {
  engine ??= await import('@marcbachmann/cel-js')
}

/**
 * Parses and type-checks an expression over `self` and `oldSelf`. Throws when it does not parse, uses a function or
 * undefined variable, or cannot give the wanted type.
 */
export function compileExpression(
  expression: string,
  wanted: 'bool' | 'string',
  variables: CelVariables,
): CelExpression {
  const key = `${variables.self} ${variables.isOldOptional}`
  const env = environments.get(key) ?? createEnvironment(variables)
  environments.set(key, env)
  const source = renamePatternFunctions(expression)
  const checked = env.check(source)
  if (!checked.valid) throw checked.error ?? new Error('expression does not compile')
  if (checked.type !== wanted && checked.type !== 'dyn') throw new Error(`cel expression must evaluate to a ${wanted}`)
  return env.parse(source) as CelExpression
}

/** A value of which a rule can ask whether it is there. */
export function optionalValue(value: unknown): unknown {
  if (!engine) throw new Error('CEL engine is not loaded')
  return value === undefined || value === null ? engine.Optional.none() : engine.Optional.of(value)
}

function createEnvironment({ self, isOldOptional }: CelVariables): Environment {
  if (!engine) throw new Error('CEL engine is not loaded')
  const env = new engine.Environment({ homogeneousAggregateLiterals: false, enableOptionalTypes: true })
  return env
    .registerVariable('self', self)
    .registerVariable('oldSelf', isOldOptional ? `optional<${self}>` : self)
    .registerFunction('string.re2Matches(string): bool', matches)
    .registerFunction('re2Matches(string, string): bool', matches)
    .registerFunction(
      'string.find(string): string',
      (text: string, pattern: string) => findPattern(pattern, text) ?? '',
    )
    .registerFunction('list.isSorted(): bool', isSorted)
    .registerFunction('list.sum(): dyn', sum)
    .registerFunction('list.min(): dyn', (list: Iterable<unknown>) => extreme(list, 'min'))
    .registerFunction('list.max(): dyn', (list: Iterable<unknown>) => extreme(list, 'max'))
    .registerFunction('list.indexOf(dyn): int', (list: Iterable<unknown>, item: unknown) => indexOf([...list], item))
    .registerFunction('list.lastIndexOf(dyn): int', lastIndexOf)
    .registerFunction('string.charAt(int): string', (text: string, index: bigint) => text.charAt(Number(index)))
    .registerFunction('string.replace(string, string): string', (text: string, from: string, to: string) =>
      text.replaceAll(from, () => to),
    )
}

function matches(text: string, pattern: string): boolean {
  return patternMatcher(pattern)(text)
}

function isOrdered(a: unknown, b: unknown): boolean {
  // CEL lists that reach these functions hold values of one comparable type; anything else compares as false.
  return (a as number) <= (b as number)
}

function isSorted(list: Iterable<unknown>): boolean {
  const items = [...list]
  return items.every((item, i) => i === 0 || isOrdered(items[i - 1], item))
}

function sum(list: Iterable<unknown>): unknown {
  const items = [...list]
  if (items.every((item) => typeof item === 'bigint')) return items.reduce((total, item) => total + item, 0n)
  if (items.every((item) => typeof item === 'number')) return items.reduce((total, item) => total + item, 0)
  throw new Error('no such overload: sum')
}

function extreme(list: Iterable<unknown>, which: 'min' | 'max'): unknown {
  const items = [...list]
  if (items.length === 0) throw new Error(`${which} called on empty list`)
  return items.reduce((best, item) => (isOrdered(best, item) === (which === 'min') ? best : item))
}

function indexOf(items: readonly unknown[], item: unknown): bigint {
  return BigInt(items.indexOf(item))
}

function lastIndexOf(list: Iterable<unknown>, item: unknown): bigint {
  return BigInt([...list].lastIndexOf(item))
}

/**
 * The engine's own `matches` uses JavaScript's regular expressions, whose syntax and running time differ from RE2's.
 * It cannot be replaced, so calls of it are renamed; text inside string literals stays as it is.
 */
function renamePatternFunctions(expression: string): string {
  const literal = /(r?"""[\s\S]*?"""|r?'''[\s\S]*?'''|r"[^"]*"|r'[^']*'|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')/
  return expression
    .split(literal)
    .map((part, i) => (i % 2 === 1 ? part : part.replaceAll(/\bmatches(\s*\()/g, 're2Matches$1')))
    .join('')
}
