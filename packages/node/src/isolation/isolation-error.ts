export type IsolationErrorCode =
  | 'NotFound'
  | 'NotExecutable'
  | 'StartFailed'
  | 'NotRunning'
  | 'ConnectionRefused'
  | 'DialFailed'
  | 'Invalid'
  | 'Forbidden'
  | 'CellLost'
  | 'CradleUnavailable'
  | 'PodNotPrepared'
  | 'Unsupported'
  | 'Aborted'

/** What can go wrong between the node agent and a cell. Callers branch on `code`. */
export class IsolationError extends Error {
  override readonly name: string = 'IsolationError'
  constructor(
    readonly code: IsolationErrorCode,
    message: string,
    options: { cause?: unknown } = {},
  ) {
    super(message, options)
  }
}

const known = new Set<string>([
  'NotFound',
  'NotExecutable',
  'StartFailed',
  'NotRunning',
  'ConnectionRefused',
  'DialFailed',
  'Invalid',
  'Forbidden',
  'CellLost',
  'CradleUnavailable',
  'PodNotPrepared',
  'Unsupported',
  'Aborted',
])

/** The typed form of a code and message that crossed a socket; an unknown code becomes `StartFailed`. */
export function isolationError(code: string, message: string): IsolationError {
  return new IsolationError(known.has(code) ? (code as IsolationErrorCode) : 'StartFailed', message)
}
