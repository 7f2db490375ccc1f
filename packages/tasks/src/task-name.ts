import { createHash, randomBytes } from 'node:crypto'

const nameAlphabet = 'bcdfghjklmnpqrstvwxz2456789'

/** The same name for the same key, so that a repeat finds the first one's task. */
export function nameFor(idempotencyKey: string | undefined): string {
  return nameFrom(idempotencyKey ? createHash('sha256').update(idempotencyKey).digest() : randomBytes(16))
}

/** The name that all attempts of one request share. */
export function groupNameFor(idempotencyKey: string | undefined): string {
  return nameFor(idempotencyKey).replace(/^task-/, 'group-')
}

/** `task-` and ten characters that spell no word and read well aloud. */
function nameFrom(bytes: Uint8Array): string {
  return `task-${Array.from(bytes.subarray(0, 10), (byte) => nameAlphabet[byte % nameAlphabet.length]).join('')}`
}

/** What a request is recognized by when it is repeated. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
