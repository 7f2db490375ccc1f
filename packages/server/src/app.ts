import type { Logger } from '@corral/resources'
import type { TaskService } from '@corral/tasks'
import { OpenAPIHono } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { Registry } from 'prom-client'
import { bearerAuth } from './bearer-auth.js'
import { eventBody, eventContentType, eventFormat } from './event-stream.js'
import { describe, httpError } from './http-error.js'
import {
  cancelTaskRoute,
  createTaskRoute,
  getTaskRoute,
  healthRoute,
  listTasksRoute,
  metricsRoute,
  readyRoute,
  retryTaskRoute,
  taskDiffRoute,
  taskEventsRoute,
  taskLogsRoute,
} from './task-routes.js'

export interface AppOptions {
  tasks: TaskService
  token: string
  /** Whether everything behind the API works. */
  isReady: () => boolean
  registry: Registry
  version: string
  log: Logger
}

const maxBodyBytes = 16 * 1024 * 1024

/** The HTTP API as one `fetch` handler. Bad input answers 4xx with a code and a hint, and changes nothing. */
export function createApp(options: AppOptions): OpenAPIHono {
  const { tasks, log } = options
  const app = new OpenAPIHono({
    defaultHook: (result, context) => {
      if (result.success) return undefined
      const malformed =
        result.target === 'json' &&
        result.error.issues.some((issue) => issue.path.length === 0 && issue.code === 'invalid_type')
      const problems = result.error.issues.map((issue) => `${issue.path.join('.') || result.target}: ${issue.message}`)
      const { status, body } = malformed
        ? describe('BadRequest', `the body is not a task: ${problems[0]}`)
        : describe('Invalid', problems.slice(0, 10).join('; '))
      return context.json(body, status as 422)
    },
  })
  app.use('*', bearerAuth(options.token))
  const countBody = bodyLimit({
    maxSize: maxBodyBytes,
    onError: (context) => {
      const { status, body } = describe('RequestEntityTooLarge', `the body is larger than ${maxBodyBytes} bytes`)
      return context.json(body, status as 413)
    },
  })
  app.use('*', (context, next) => (saysItIsSmall(context) ? next() : countBody(context, next)))
  app.onError((error, context) => {
    const isSyntax = error instanceof SyntaxError || /malformed json/i.test(error.message)
    const { status, body } = isSyntax ? describe('BadRequest', 'the body is not valid JSON') : httpError(error)
    if (status >= 500) log.error('request failed', { method: context.req.method, path: context.req.path, error })
    return context.json(body, status as 500)
  })
  app.notFound((context) => {
    const { body } = describe(
      'NotFound',
      `there is no ${context.req.method} ${context.req.path}`,
      404,
      'See /openapi.json for the routes.',
    )
    return context.json(body, 404)
  })

  app.openapi(healthRoute, (context) => context.text('ok', 200))
  app.openapi(readyRoute, (context) => (options.isReady() ? context.text('ok', 200) : context.text('not ready', 503)))
  app.openapi(metricsRoute, async (context) =>
    context.text(await options.registry.metrics(), 200, { 'content-type': options.registry.contentType }),
  )

  app.openapi(createTaskRoute, async (context) => {
    const key = context.req.header('idempotency-key')
    const { task, isReplay } = await tasks.create(context.req.valid('json'), key ? { idempotencyKey: key } : {})
    if (isReplay) context.header('idempotent-replay', 'true')
    context.header('location', `/tasks/${task.id}`)
    return context.json({ id: task.id, status: task.status }, 201)
  })
  app.openapi(listTasksRoute, async (context) => {
    const { status, limit, after } = context.req.valid('query')
    return context.json(
      await tasks.list({ ...(status ? { status } : {}), ...(limit ? { limit } : {}), ...(after ? { after } : {}) }),
      200,
    )
  })
  app.openapi(getTaskRoute, async (context) => context.json(await tasks.get(context.req.valid('param').id), 200))
  app.openapi(cancelTaskRoute, async (context) => context.json(await tasks.cancel(context.req.valid('param').id), 202))
  app.openapi(retryTaskRoute, async (context) => {
    const task = await tasks.retry(context.req.valid('param').id)
    context.header('location', `/tasks/${task.id}`)
    return context.json({ id: task.id, status: task.status }, 201)
  })
  app.openapi(taskEventsRoute, async (context) => {
    const { after, follow } = context.req.valid('query')
    const lastSeen = Number(context.req.header('last-event-id') ?? Number.NaN)
    const abort = new AbortController()
    const events = await tasks.events(context.req.valid('param').id, {
      after: after ?? (Number.isInteger(lastSeen) ? lastSeen : 0),
      follow: follow !== 'false',
      signal: AbortSignal.any([abort.signal, context.req.raw.signal]),
    })
    const format = eventFormat(context.req.header('accept'))
    return new Response(eventBody(events, format, abort), {
      headers: { 'content-type': eventContentType[format], 'cache-control': 'no-cache', 'x-accel-buffering': 'no' },
    }) as never // a streamed answer has no type in the route table
  })
  app.openapi(
    taskLogsRoute,
    async (context) => textStream(await tasks.logs(context.req.valid('param').id), 'text/plain') as never,
  )
  app.openapi(
    taskDiffRoute,
    async (context) => textStream(await tasks.diff(context.req.valid('param').id), 'text/x-diff') as never,
  )

  app.openAPIRegistry.registerComponent('securitySchemes', 'token', { type: 'http', scheme: 'bearer' })
  app.doc31('/openapi.json', {
    openapi: '3.1.0',
    info: {
      title: 'Corral task API',
      version: options.version,
      description: 'Runs coding agents on tasks, each in its own sandbox.',
    },
  })
  return app
}

/** Counting a body costs a stream; whoever says how long theirs is cannot send more than that. */
function saysItIsSmall({ req }: Context): boolean {
  if (req.method === 'GET' || req.method === 'HEAD') return true
  const length = req.header('content-length')
  return length !== undefined && req.header('transfer-encoding') === undefined && Number(length) <= maxBodyBytes
}

function textStream(chunks: AsyncIterable<Uint8Array>, type: string): Response {
  const iterator = chunks[Symbol.asyncIterator]()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await iterator.next()
      if (next.done) controller.close()
      else controller.enqueue(next.value)
    },
    async cancel() {
      await iterator.return?.()
    },
  })
  return new Response(body, { headers: { 'content-type': `${type}; charset=utf-8` } })
}
