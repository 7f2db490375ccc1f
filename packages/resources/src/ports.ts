/** Ports that every package may be handed: nothing deep inside reaches for the clock or the console itself. */

export interface Clock {
  /** The current time. Tests hand in a fixed or stepped one. */
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }

export type LogFields = Record<string, unknown>

/** A constant message and fields. `child` narrows: its fields are added to every line. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  child(fields: LogFields): Logger
}

export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
}
