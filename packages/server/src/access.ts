import { type BrowserSessions, createBrowserSessions } from './browser-session.js'
import { createGate, createHostCheck, type Gate, type GateOptions } from './request-gate.js'

/** Who may ask this server, for its routes, its pages and its WebSockets. */
export interface Access {
  readonly sessions: BrowserSessions
  readonly gate: Gate
  isHost(host: string): boolean
}

export function createAccess(options: Omit<GateOptions, 'sessions'>): Access {
  const sessions = createBrowserSessions(options.token)
  return { sessions, gate: createGate({ ...options, sessions }), isHost: createHostCheck(options) }
}
