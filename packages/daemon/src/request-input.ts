import type { IncomingMessage } from 'node:http'
import { CorralError, daemonLimits, type ErrorCode } from '@corral/protocol'

/** The part of a schema that is needed here, so that any version of the schema library will do. */
interface Schema<T> {
  safeParse(
    value: unknown,
  ):
    | { success: true; data: T }
    | { success: false; error: { issues: readonly { path: readonly PropertyKey[]; message: string }[] } }
}

/** The request's JSON body through a schema. Too long, not JSON or not fitting is an error that names the place. */
export async function readJson<T>(request: Request, schema: Schema<T>, misfit: ErrorCode = 'Invalid'): Promise<T> {
  const text = await readText(request)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new CorralError('BadRequest', 'the body is not JSON', { cause })
  }
  return check(value, schema, misfit)
}

/** A value through a schema. */
export function check<T>(value: unknown, schema: Schema<T>, misfit: ErrorCode = 'Invalid'): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const place = issue && issue.path.length > 0 ? `"${issue.path.map(String).join('.')}": ` : ''
  throw new CorralError(misfit, `${place}${issue?.message ?? 'not allowed'}`)
}

async function readText(request: Request): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let length = 0
  for await (const chunk of bodyChunks(request)) {
    length += chunk.length
    if (length > daemonLimits.jsonBodyBytes) {
      throw new CorralError('RequestEntityTooLarge', `the body has more than ${daemonLimits.jsonBodyBytes} bytes`)
    }
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

const messages = new WeakMap<Request, IncomingMessage>()

/** Says which message of Node's server a request was made of, for `bodyChunks`. */
export function rememberMessage(request: Request, message: IncomingMessage): void {
  messages.set(request, message)
}

/**
 * The body as it arrives; nothing where there is none. Read from Node's own message where that is known: the two web
 * streams on top of it cost as much again as receiving and storing a large upload. Stopping early leaves the connection
 * open, so that the answer that says why still arrives.
 */
export async function* bodyChunks(request: Request): AsyncIterable<Uint8Array> {
  const message = messages.get(request)
  if (message) yield* message.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>
  else if (request.body) yield* request.body as AsyncIterable<Uint8Array>
}

/** A whole, non-negative number from a query, or the default where it is absent. */
export function queryNumber(value: string | null, name: string, fallback: number): number {
  if (value === null || value === '') return fallback
  if (!/^\d{1,15}$/.test(value)) throw new CorralError('Invalid', `"${name}" must be a whole number`)
  return Number(value)
}

/** `true` and `1` are true, `false`, `0` and absent are false; anything else is refused. */
export function queryFlag(value: string | null, name: string): boolean {
  if (value === null || value === '' || value === 'false' || value === '0') return false
  if (value === 'true' || value === '1') return true
  throw new CorralError('Invalid', `"${name}" must be true or false`)
}

/** The absolute path that follows a route's prefix. */
export function pathAfter(url: URL, prefix: string): string {
  let path: string
  try {
    path = decodeURIComponent(url.pathname.slice(prefix.length))
  } catch (cause) {
    throw new CorralError('BadRequest', 'the path is not valid percent-encoding', { cause })
  }
  if (path.includes('\0')) throw new CorralError('BadRequest', 'a path must not contain NUL')
  return path.startsWith('/') ? path : `/${path}`
}
