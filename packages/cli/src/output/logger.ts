import type { LogFields, Logger } from '@corral/resources'
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
        error: (error: unknown) =>
          error instanceof Error
            ? { message: error.message, code: (error as { code?: unknown }).code, stack: error.stack }
            : error,
      },
    },
    pino.destination({ dest: 2, sync: true }),
  )
  return wrap(root)
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
