import { KubeError } from '@corral/resources'
import { isRecord, type JsonRecord, jsonCopy, jsonEqual, setKey } from '../schema/json-value.js'

const MAX_OPERATIONS = 10_000
/** As much as a request may have. Thirty copies of a document into itself would otherwise make a billion of it. */
const MAX_COPIED_BYTES = 3 * 1024 * 1024

interface Operation {
  readonly op: string
  readonly path: string
  readonly from?: string
  readonly value?: unknown
}

/** A place in a document: its parent and the key or index below it. The empty pointer has no parent. */
interface Place {
  readonly parent: JsonRecord | unknown[]
  readonly key: string
}

/**
 * RFC 6902. The target is not changed. A body that is not a list of operations is a `BadRequest` (400); an operation
 * that does not apply, a failing `test` included, is `Invalid` (422).
 */
export function jsonPatch(target: unknown, operations: unknown): unknown {
  const list = parseOperations(operations)
  let document = jsonCopy(target)
  let copiedBytes = 0
  for (const operation of list) {
    if (operation.op === 'copy') {
      copiedBytes += Buffer.byteLength(JSON.stringify(read(document, fromOf(operation))))
      if (copiedBytes > MAX_COPIED_BYTES) throw tooMuchCopied(copiedBytes)
    }
    document = applyOperation(document, operation)
  }
  return document
}

const MEMBERS = ['op', 'path', 'from', 'value']

/** Where operations have members that no operation has; they are ignored when the patch is applied. */
export function unknownMembers(operations: readonly unknown[]): string[] {
  return operations.flatMap((operation, index) =>
    Object.keys(isRecord(operation) ? operation : {})
      .filter((name) => !MEMBERS.includes(name))
      .map((name) => `[${index}].${name}`),
  )
}

function parseOperations(operations: unknown): Operation[] {
  if (!Array.isArray(operations)) {
    throw new KubeError('BadRequest', 'error decoding patch: a JSON patch is a list of operations', { status: 400 })
  }
  if (operations.length > MAX_OPERATIONS) {
    throw new KubeError(
      'RequestEntityTooLarge',
      `Request entity too large: The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${operations.length}`,
      { status: 413 },
    )
  }
  return operations.map((each) => {
    if (!isRecord(each)) {
      throw new KubeError('BadRequest', 'error decoding patch: an operation is an object', { status: 400 })
    }
    if (typeof each.op !== 'string' || typeof each.path !== 'string') throw refused('an operation has an op and a path')
    // The two members every operation needs were checked; the others are checked where they are used.
    return each as unknown as Operation
  })
}

function applyOperation(document: unknown, operation: Operation): unknown {
  switch (operation.op) {
    case 'add':
      return write(document, operation.path, writtenValue(operation), 'add')
    case 'replace':
      return write(document, operation.path, writtenValue(operation), 'replace')
    case 'remove':
      return remove(document, operation.path)
    case 'test':
      return test(document, operation)
    case 'copy':
      return write(document, operation.path, jsonCopy(read(document, fromOf(operation))), 'add')
    case 'move': {
      const from = fromOf(operation)
      if (operation.path.startsWith(`${from}/`)) throw refused(`cannot move ${from} into itself`)
      const value = read(document, from)
      return write(remove(document, from), operation.path, value, 'add')
    }
    default:
      throw refused(`unknown operation ${JSON.stringify(operation.op)}`)
  }
}

/** An operation without a value writes null, as Kubernetes' library has it. */
function writtenValue(operation: Operation): unknown {
  return jsonCopy(operation.value ?? null)
}

function fromOf(operation: Operation): string {
  if (typeof operation.from !== 'string') throw refused(`${operation.op} operation without a from`)
  return operation.from
}

function test(document: unknown, operation: Operation): unknown {
  const expected = operation.value ?? null
  let actual: unknown
  try {
    actual = read(document, operation.path)
  } catch (error) {
    // An absent value is equal to null, as Kubernetes' library sees it.
    if (expected !== null) throw error
    actual = null
  }
  if (!jsonEqual(actual, expected)) throw refused(`testing value ${operation.path} failed`)
  return document
}

function write(document: unknown, path: string, value: unknown, mode: 'add' | 'replace'): unknown {
  if (path === '') return value
  const { parent, key } = placeOf(document, path)
  // Replacing a member that is absent adds it; only items of a list must exist.
  if (!Array.isArray(parent)) setKey(parent, key, value)
  else if (mode === 'replace') parent[indexOf(parent, key, path, parent.length - 1)] = value
  else parent.splice(key === '-' ? parent.length : indexOf(parent, key, path, parent.length), 0, value)
  return document
}

function remove(document: unknown, path: string): unknown {
  if (path === '') return null
  const { parent, key } = placeOf(document, path)
  if (Array.isArray(parent)) parent.splice(indexOf(parent, key, path, parent.length - 1), 1)
  else if (Object.hasOwn(parent, key)) delete parent[key]
  else throw refused(`remove operation does not apply: doc is missing path: ${path}`)
  return document
}

function read(document: unknown, path: string): unknown {
  if (path === '') return document
  const { parent, key } = placeOf(document, path)
  return child(parent, key, path)
}

function child(parent: unknown, key: string, path: string): unknown {
  if (Array.isArray(parent)) return parent[indexOf(parent, key, path, parent.length - 1)]
  if (isRecord(parent) && Object.hasOwn(parent, key)) return parent[key]
  throw refused(`operation does not apply: doc is missing path: ${path}`)
}

function placeOf(document: unknown, path: string): Place {
  if (!path.startsWith('/')) throw refused(`not a JSON pointer: ${path}`)
  const steps = path
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  const key = steps.pop()!
  let parent = document
  for (const step of steps) parent = child(parent, step, path)
  if (!Array.isArray(parent) && !isRecord(parent)) throw refused(`operation does not apply: no parent for ${path}`)
  return { parent, key }
}

function indexOf(list: readonly unknown[], key: string, path: string, last: number): number {
  // Kubernetes' library counts negative indices from the end.
  const index = /^-?(0|[1-9]\d{0,8})$/.test(key) ? Number(key) : Number.NaN
  const absolute = index < 0 ? index + list.length : index
  if (!(absolute >= 0 && absolute <= last)) throw refused(`Unable to access invalid index in ${path}: ${key}`)
  return absolute
}

function tooMuchCopied(bytes: number): KubeError {
  return new KubeError(
    'RequestEntityTooLarge',
    `Request entity too large: Unable to complete the copy, the accumulated size increase of copy is ${bytes}, exceeding the limit ${MAX_COPIED_BYTES}`,
    { status: 413 },
  )
}

/** Kubernetes tells the caller nothing about which operation failed; the reason is kept as the cause. */
function refused(reason: string): KubeError {
  return new KubeError('Invalid', 'the server rejected our request due to an error in our request', {
    status: 422,
    details: {},
    cause: new Error(reason),
  })
}
