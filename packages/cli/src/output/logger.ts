import type { LogFields, Logger } from '@corral/ports'
import { type Logger as PinoLogger, pino } from 'pino'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

const secretNames = ['token', 'key', 'apiKey', 'authorization', 'password', 'secret', 'prompt']

/** JSON lines on standard error; values under secret names are never written. */
export function jsonLogger(level: LogLevel): Logger {
  const root = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      messageKey: 'message',
      redact: { paths: secretNames.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
      serializers: {
        error: (error: unknown) => (error instanceof Error ? errorFields(error, level === 'debug') : error),
      },
    },
    pino.destination({ dest: 2, sync: true }),
  )
  return wrap(root)
}

/**
 * A failure that carries a code is one we know: its message says what is wrong, and retries of it would fill the log with
 * stacks. One without a code should not happen, and its stack is what finds it.
 */
export function errorFields(
  error: Error,
  withStack: boolean,
): { message: string; code: unknown; stack?: string | undefined } {
  const { code } = error as { code?: unknown }
  return { message: error.message, code, ...(withStack || !isKnown(error) ? { stack: error.stack } : {}) }
}

function isKnown(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isKnown)
  return (error as { code?: unknown } | undefined)?.code !== undefined
}

function wrap(target: PinoLogger): Logger {
  const write = (level: 'debug' | 'info' | 'warn' | 'error') => (message: string, fields?: LogFields) =>
    target[level](fields ?? {}, message)
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => wrap(target.child(fields)),
  }
}
