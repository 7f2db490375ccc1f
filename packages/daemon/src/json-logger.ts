import type { LogFields, Logger } from '@corral/ports'

/** One JSON object per line. */
export function jsonLogger(write: (line: string) => void, now: () => Date, fields: LogFields = {}): Logger {
  const line = (level: string) => (message: string, more?: LogFields) =>
    write(`${JSON.stringify({ time: now().toISOString(), level, msg: message, ...fields, ...more })}\n`)
  return {
    debug: () => {},
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    child: (more) => jsonLogger(write, now, { ...fields, ...more }),
  }
}
