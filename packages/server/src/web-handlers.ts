import type { SessionView } from '@corral/protocol'
import type { OpenAPIHono } from '@hono/zod-openapi'
import type { BrowserSessions } from './browser-session.js'
import { setSession } from './gate-middleware.js'
import { describe } from './http-error.js'
import { closeSessionRoute, getSessionRoute, openSessionRoute, streamRoute, terminalRoute } from './web-routes.js'

/** Sessions of browsers; the WebSockets answer what is not one. */
export function addWebHandlers(app: OpenAPIHono, sessions: BrowserSessions, view: SessionView): void {
  app.openapi(openSessionRoute, (context) => {
    const proof = context.req.valid('json')
    const session = sessions.open(proof)
    if (session === undefined) {
      const [what, hint] =
        'code' in proof
          ? ['this link was used already or is too old', 'Get a new one with `corral open`.']
          : ['this is not the token of this platform', '`corral up` prints it; it is also in the file `token`.']
      return context.json(describe('Unauthorized', what, 401, hint).body, 401)
    }
    context.res = new Response(null, { status: 204 })
    setSession(context, sessions, session)
    return context.res as never // its cookie has no type in the route table
  })
  app.openapi(getSessionRoute, (context) => context.json(view, 200))
  app.openapi(closeSessionRoute, (context) => {
    context.res = new Response(null, { status: 204 })
    setSession(context, sessions, '')
    return context.res as never // as above
  })
  const hint = 'Open it as a WebSocket.'
  app.openapi(streamRoute, (context) =>
    context.json(describe('BadRequest', 'this route is a WebSocket', 426, hint).body, 426),
  )
  app.openapi(terminalRoute, (context) =>
    context.json(describe('BadRequest', 'this route is a WebSocket', 426, hint).body, 426),
  )
}
