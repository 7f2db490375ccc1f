import type { SpanSink } from '@corral/ports'
import { newSpan, parseTraceparent, traceparentOf } from '@corral/tasks'
import type { Context, MiddlewareHandler } from 'hono'
import { matchedRoutes } from 'hono/route'

/** By context: counting a body, or taking curl's content type for JSON, puts another request into it. */
const traces = new WeakMap<Context, string>()

/** The `traceparent` of the span a request is answered in; undefined where it is not traced. */
export function traceparentFor(context: Context): string | undefined {
  return traces.get(context)
}

/**
 * A span for every request that changes something, below the caller's own. GET and HEAD get none: pages poll,
 * and streams last for hours. Without a `SpanSink` the caller's `traceparent` is passed on unchanged.
 */
export function traceRequests(spans: SpanSink | undefined): MiddlewareHandler {
  return async (context, next) => {
    const { req } = context
    const parent = parseTraceparent(req.header('traceparent'))
    if (!spans || req.method === 'GET' || req.method === 'HEAD' || parent?.isSampled === false) {
      if (parent) traces.set(context, traceparentOf(parent))
      return next()
    }
    const span = newSpan(parent)
    traces.set(context, traceparentOf(span))
    const startMs = Date.now()
    await next()
    const { status } = context.res
    // The pattern of the route, not the path: with names of tasks in it every request would have its own span name.
    const route = matchedRoutes(context).at(-1)?.path ?? '/*'
    spans({
      ...{ traceId: span.traceId, spanId: span.spanId, kind: 'server', name: `${req.method} ${route}` },
      ...(parent ? { parentId: parent.spanId } : {}),
      ...{ startMs, endMs: Date.now() },
      attributes: { 'http.request.method': req.method, 'http.route': route, 'http.response.status_code': status },
      ...(status >= 500 ? { error: String(status) } : {}),
    })
  }
}
