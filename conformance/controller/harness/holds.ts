import { AssertionError } from 'node:assert'

/** Fails unless `value` is true. Node's own `ok` parses the source for its message, which takes for ever once bundled. */
export function holds(value: unknown, what: string): asserts value {
  if (!value) throw new AssertionError({ message: `${what} does not hold`, actual: value, expected: true })
}
