import { errorBodySchema, openSessionRequestSchema, sessionViewSchema } from '@corral/protocol'
import { createRoute, z } from '@hono/zod-openapi'

/** The routes that only pages use, as data. */

const json = <T extends z.ZodType>(schema: T, description: string) => ({
  content: { 'application/json': { schema } },
  description,
})
const security = [{ token: [] }, { session: [] }]
const refused = {
  401: json(errorBodySchema, 'No token, and no session of a browser.'),
  403: json(errorBodySchema, 'The request comes from a page of another site, or names another host.'),
}
const upgrade = { 101: { description: 'The WebSocket.' }, 426: json(errorBodySchema, 'This is not a WebSocket.') }

export const openSessionRoute = createRoute({
  method: 'post',
  path: '/session',
  summary: 'Sign a browser in',
  description:
    'With the platform token, or the one-time code of the link that `corral up` and `corral open` print. Answers with a cookie.',
  request: { body: { required: true, ...json(openSessionRequestSchema, 'Token or code') } },
  responses: {
    204: { description: 'Signed in.' },
    400: json(errorBodySchema, 'The request is malformed.'),
    422: json(errorBodySchema, 'A value is not allowed.'),
    ...refused,
  },
})

export const getSessionRoute = createRoute({
  method: 'get',
  path: '/session',
  summary: 'Whether this browser is signed in, and to what',
  security,
  responses: { 200: json(sessionViewSchema, 'It is.'), ...refused },
})

export const closeSessionRoute = createRoute({
  method: 'delete',
  path: '/session',
  summary: 'Sign this browser out',
  security,
  responses: { 204: { description: 'Signed out.' }, ...refused },
})

export const streamRoute = createRoute({
  method: 'get',
  path: '/stream',
  summary: 'Changes of the task list and events of tasks, as a WebSocket',
  description:
    'Text frames of JSON. Sends `tasks` (from `cursor` on, or all with `reset`), `events`, `ended` and `failed` of tasks that were subscribed to, `beat` every 15 s. Takes `{"type":"subscribe","task","after"}` and `{"type":"unsubscribe","task"}`.',
  security,
  request: { query: z.object({ cursor: z.string().max(100).optional() }) },
  responses: { ...upgrade, ...refused },
})

export const terminalRoute = createRoute({
  method: 'get',
  path: '/tasks/{id}/terminal',
  summary: 'A shell in the sandbox of a task, as a WebSocket',
  description:
    'Binary frames are bytes of the terminal. Text frames: `{"type":"resize","columns","rows"}` to the server; `ready`, `exit`, `error` from it. The shell of a `session` goes on without a reader; `from` continues at an offset of its output.',
  security,
  request: {
    params: z.object({ id: z.string() }),
    query: z.object({
      session: z
        .string()
        .regex(/^[A-Za-z0-9-]{1,64}$/)
        .optional(),
      from: z.coerce.number().int().min(0).optional(),
      columns: z.coerce.number().int().min(1).max(1000).optional(),
      rows: z.coerce.number().int().min(1).max(1000).optional(),
    }),
  },
  responses: { ...upgrade, ...refused },
})
