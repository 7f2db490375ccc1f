import type { Logger, SpanSink } from '@corral/ports'
import { CorralError, issueWords, reservedLabels, type SessionView } from '@corral/protocol'
import type { EnvironmentService, ProjectService, TaskService } from '@corral/tasks'
import { OpenAPIHono } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { Registry } from 'prom-client'
import { type Access, createAccess } from './access.js'
import { addAttemptRoutes } from './attempt-routes.js'
import { byteStream } from './byte-stream.js'
import { compressJson } from './compress-json.js'
import { dropBody } from './drop-body.js'
import { addEnvironmentRoutes } from './environment-routes.js'
import { eventBody, eventContentType, eventFormat } from './event-stream.js'
import { gateMiddleware } from './gate-middleware.js'
import { describe, httpError } from './http-error.js'
import { jsonBody, optionalBody } from './json-body.js'
import { missingRoute } from './missing-route.js'
import { addPlatformHandlers } from './platform-handlers.js'
import type { PlatformService } from './platform-service.js'
import { addProjectRoutes } from './project-routes.js'
import { addResultRoutes } from './result-routes.js'
import {
  answerQuestionRoute,
  approvePlanRoute,
  cancelTaskRoute,
  createTaskRoute,
  getTaskRoute,
  healthRoute,
  listTasksRoute,
  metricsRoute,
  readyRoute,
  rejectPlanRoute,
  removeTaskRoute,
  retryTaskRoute,
  revisePlanRoute,
  taskEventsRoute,
  taskLogsRoute,
  taskMessageRoute,
} from './task-routes.js'
import { traceparentFor, traceRequests } from './trace-requests.js'
import { type WebFiles, webPages } from './web-files.js'
import { addWebHandlers } from './web-handlers.js'

export interface AppOptions {
  tasks: TaskService
  /** Its routes are absent without it. */
  projects?: ProjectService | undefined
  /** Its routes are absent without it. */
  environments?: EnvironmentService | undefined
  token: string
  /** Who may ask; with the token alone, from this machine alone, without it. */
  access?: Access | undefined
  /** The pages of the web interface; `GET /` needs the token without them. */
  web?: WebFiles | undefined
  /** What pages show of the platform itself; its routes are absent without it. */
  platform?: PlatformService | undefined
  /** What pages say of the platform besides its version. */
  session?: Omit<SessionView, 'version'> | undefined
  /** Whether everything behind the API works. */
  isReady: () => boolean
  /** What is wrong with the disk of the platform, while something is: new tasks are refused then. */
  diskProblem?: (() => string | undefined) | undefined
  registry: Registry
  /** Hears of every request that changes something. */
  spans?: SpanSink | undefined
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
      const { issues } = result.error
      const isOther =
        result.target === 'json' && issues.some(({ path, code }) => path.length === 0 && code === 'invalid_type')
      const problems = issueWords(issues.slice(0, 10), result.target === 'json' ? 'body' : result.target).join('; ')
      const { status, body } = describe(isOther ? 'BadRequest' : 'Invalid', problems)
      return context.json(body, status as 422)
    },
  })
  const access = options.access ?? createAccess({ token: options.token })
  if (options.web) app.use('*', webPages(options.web, access.isHost))
  app.use('*', compressJson)
  app.use('*', traceRequests(options.spans))
  app.use('*', gateMiddleware(access.gate, access.sessions))
  const countBody = bodyLimit({
    maxSize: maxBodyBytes,
    onError: async (context) => {
      const { status, body } = describe('RequestEntityTooLarge', `the body is larger than ${maxBodyBytes} bytes`)
      const isRead = await dropBody(context.req.raw)
      // With a rest that is not read the connection cannot carry another request and is closed.
      return context.json(body, status as 413, isRead ? {} : { connection: 'close' })
    },
  })
  app.use('*', (context, next) => (saysItIsSmall(context) ? next() : countBody(context, next)))
  app.use('*', jsonBody)
  app.use('/tasks/:id/retry', optionalBody)
  app.onError((error, context) => {
    const { status, body } = httpError(error)
    if (status >= 500) log.error('request failed', { method: context.req.method, path: context.req.path, error })
    return context.json(body, status as 500)
  })
  app.notFound(missingRoute(() => app.routes))

  app.openapi(healthRoute, (context) => context.text('ok', 200))
  app.openapi(readyRoute, (context) => {
    if (!options.isReady()) return context.text('not ready', 503)
    const problem = options.diskProblem?.()
    return problem === undefined ? context.text('ok', 200) : context.text(`DiskFull: ${problem}`, 503)
  })
  const refuseWhenFull = (): void => {
    const problem = options.diskProblem?.()
    if (problem !== undefined) throw new CorralError('DiskFull', problem)
  }
  app.openapi(metricsRoute, async (context) =>
    context.text(await options.registry.metrics(), 200, { 'content-type': options.registry.contentType }),
  )

  app.openapi(createTaskRoute, async (context) => {
    refuseWhenFull()
    const reserved = reservedLabelIn(await context.req.json())
    if (reserved) throw new CorralError('Invalid', `labels.${reserved}: its name is reserved and cannot be a label`)
    const { task, isReplay, group } = await tasks.create(context.req.valid('json'), originOf(context))
    if (isReplay) context.header('idempotent-replay', 'true')
    context.header('location', `/tasks/${task.id}`)
    const attempts = group ? { group: group.name, tasks: group.tasks } : {}
    return context.json({ id: task.id, status: task.status, ...attempts }, 201)
  })
  app.openapi(listTasksRoute, async (context) => {
    const { status, group, project, limit, after } = context.req.valid('query')
    return context.json(
      await tasks.list({
        ...(status ? { status } : {}),
        ...(group ? { group } : {}),
        ...(project ? { project } : {}),
        ...(limit ? { limit } : {}),
        ...(after ? { after } : {}),
      }),
      200,
    )
  })
  app.openapi(getTaskRoute, async (context) => context.json(await tasks.get(context.req.valid('param').id), 200))
  app.openapi(cancelTaskRoute, async (context) => context.json(await tasks.cancel(context.req.valid('param').id), 202))
  app.openapi(retryTaskRoute, async (context) => {
    refuseWhenFull()
    const { id } = context.req.valid('param')
    const { task, isReplay } = await tasks.retry(id, context.req.valid('json'), originOf(context))
    if (isReplay) context.header('idempotent-replay', 'true')
    context.header('location', `/tasks/${task.id}`)
    return context.json({ id: task.id, status: task.status }, 201)
  })
  app.openapi(taskMessageRoute, async (context) => {
    refuseWhenFull()
    const { id } = context.req.valid('param')
    const answer = await tasks.message(id, context.req.valid('json'), originOf(context))
    if ('delivery' in answer) return context.json(answer, 202)
    const { task, isReplay } = answer
    if (isReplay) context.header('idempotent-replay', 'true')
    context.header('location', `/tasks/${task.id}`)
    return context.json({ id: task.id, status: task.status }, 201)
  })
  app.openapi(approvePlanRoute, async (context) =>
    context.json(await tasks.decide(context.req.valid('param').id, 'approve', context.req.valid('json')), 202),
  )
  app.openapi(revisePlanRoute, async (context) =>
    context.json(await tasks.decide(context.req.valid('param').id, 'revise', context.req.valid('json')), 202),
  )
  app.openapi(rejectPlanRoute, async (context) =>
    context.json(await tasks.decide(context.req.valid('param').id, 'reject', context.req.valid('json')), 202),
  )
  app.openapi(answerQuestionRoute, async (context) =>
    context.json(await tasks.answer(context.req.valid('param').id, context.req.valid('json')), 202),
  )
  app.openapi(removeTaskRoute, async (context) =>
    context.json(
      await tasks.remove(context.req.valid('param').id, { force: context.req.valid('query').force === 'true' }),
      202,
    ),
  )
  app.openapi(taskEventsRoute, async (context) => {
    const { after, follow } = context.req.valid('query')
    const lastSeen = context.req.valid('header')['last-event-id']
    const abort = new AbortController()
    const events = await tasks.events(context.req.valid('param').id, {
      after: after ?? lastSeen ?? 0,
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
    async (context) =>
      byteStream(await tasks.logs(context.req.valid('param').id), {
        'content-type': 'text/plain; charset=utf-8',
      }) as never,
  )
  addResultRoutes(app, tasks)
  addAttemptRoutes(app, tasks, refuseWhenFull)
  if (options.projects) addProjectRoutes(app, options.projects)
  if (options.environments) addEnvironmentRoutes(app, options.environments)

  if (options.platform) addPlatformHandlers(app, options.platform, tasks, refuseWhenFull)
  addWebHandlers(app, access.sessions, { version: options.version, ...options.session })

  app.openAPIRegistry.registerComponent('securitySchemes', 'session', {
    type: 'apiKey',
    in: 'cookie',
    name: 'corral_session',
    description: 'Of a browser, from POST /session. The name ends in eight characters that tell platforms apart.',
  })
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

/** What a request says besides its body. */
function originOf(context: Context): { idempotencyKey?: string; traceparent: string | undefined } {
  const key = context.req.header('idempotency-key')
  return { ...(key ? { idempotencyKey: key } : {}), traceparent: traceparentFor(context) }
}

/** zod drops a `__proto__` member without an error, so that only the body as it was parsed tells that it was sent. */
function reservedLabelIn(body: unknown): string | undefined {
  const labels = (body as { labels?: object }).labels
  return labels && reservedLabels.find((name) => Object.hasOwn(labels, name))
}

/** A request with Content-Length cannot send more than it says, so its body need not be counted through a stream. */
function saysItIsSmall({ req }: Context): boolean {
  if (req.method === 'GET' || req.method === 'HEAD') return true
  const length = req.header('content-length')
  return length !== undefined && req.header('transfer-encoding') === undefined && Number(length) <= maxBodyBytes
}
