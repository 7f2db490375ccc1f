import type { FieldError } from './field-error.js'

/** Collects errors during one walk. The path is a stack, so that it becomes text only for values that are wrong. */
export class ValidationContext {
  readonly errors: FieldError[] = []
  readonly #path: (string | number)[] = []

  /** When ratcheting, values that equal their old counterpart are not looked at; else only those that are the same. */
  constructor(readonly isRatcheting: boolean = false) {}

  push(step: string | number): void {
    this.#path.push(step)
  }

  pop(): void {
    this.#path.pop()
  }

  add(error: FieldError): void {
    this.errors.push(error)
  }

  /** `spec.containers[0].name` of the value being looked at. */
  field(child?: string): string {
    let text = ''
    for (const step of this.#path) text = appendStep(text, step)
    return child === undefined ? text : appendStep(text, child)
  }
}

function appendStep(path: string, step: string | number): string {
  if (typeof step === 'number') return `${path}[${step}]`
  return path ? `${path}.${step}` : step
}

/** One rule about one value; `old` is its counterpart before an update, where ratcheting applies. */
export type Check = (value: unknown, context: ValidationContext, old?: unknown) => void
