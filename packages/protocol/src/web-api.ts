import * as z from 'zod'
import type { TaskEvent } from './task-events.js'
import type { TaskSummary } from './task-summary.js'

/** `POST /session`: the platform's token, or the one-time code of the link that `corral up` and `corral open` print. */
export const openSessionRequestSchema = z.union([
  z.strictObject({ token: z.string().min(1).max(1000) }),
  z.strictObject({ code: z.string().min(1).max(1000) }),
])
export type OpenSessionRequest = z.infer<typeof openSessionRequestSchema>

/** `GET /session`: who asks, and what the pages show of the platform. */
export const sessionViewSchema = z.object({
  version: z.string(),
  default_agent: z.string().optional(),
  /** Whether tasks may name repositories on the disk of the platform's machine. */
  local_repositories: z.boolean().optional(),
})
export type SessionView = z.infer<typeof sessionViewSchema>

/** What a browser sends over `GET /stream`. */
export const streamRequestSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('subscribe'),
    task: z.string().min(1).max(253),
    /** The last sequence that was received; 0 for all. */
    after: z.number().int().nonnegative(),
  }),
  z.strictObject({ type: z.literal('unsubscribe'), task: z.string().min(1).max(253) }),
])
export type StreamRequest = z.infer<typeof streamRequestSchema>

/** What the server sends over `GET /stream`. */
export type StreamFrame =
  | {
      readonly type: 'tasks'
      /** Given back as `?cursor=` it continues here. */
      readonly cursor: string
      /** What was known before is void: these are all tasks there are. */
      readonly reset?: boolean
      readonly changed: readonly TaskSummary[]
      readonly removed: readonly string[]
    }
  | { readonly type: 'events'; readonly task: string; readonly events: readonly TaskEvent[] }
  /** No event follows. */
  | { readonly type: 'ended'; readonly task: string }
  | { readonly type: 'failed'; readonly task: string; readonly error: { code: string; message: string; hint?: string } }
  | { readonly type: 'beat' }

/** What a browser sends as text over `GET /tasks/{id}/terminal`; binary frames are what was typed. */
export const terminalRequestSchema = z.strictObject({
  type: z.literal('resize'),
  columns: z.number().int().min(1).max(1000),
  rows: z.number().int().min(1).max(1000),
})

/** What the server sends as text there; binary frames are output, counted from `offset` on. */
export type TerminalFrame =
  | { readonly type: 'ready'; readonly session: string; readonly offset: number }
  | { readonly type: 'gap'; readonly bytes: number }
  | { readonly type: 'exit'; readonly code: number }
  | { readonly type: 'error'; readonly error: { code: string; message: string; hint?: string } }
