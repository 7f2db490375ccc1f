import {
  buildEnvironmentRequestSchema,
  environmentEventsSchema,
  environmentListSchema,
  environmentViewSchema,
  errorBodySchema,
  rebuildEnvironmentRequestSchema,
} from '@corral/protocol'
import type { EnvironmentService } from '@corral/tasks'
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { errors, json, security } from './task-routes.js'

const name = z.object({ name: z.string().min(1).max(253).openapi({ example: 'shop-3f9c2a11d0' }) })
const answers = { ...errors, 404: json(errorBodySchema, 'There is no such environment.') }

const listEnvironmentsRoute = createRoute({
  method: 'get',
  path: '/environments',
  summary: 'Environments that were built or are to be, by name',
  security,
  responses: { 200: json(environmentListSchema, 'Environments.'), ...errors },
})

const buildEnvironmentRoute = createRoute({
  method: 'post',
  path: '/environments',
  summary: 'Build the environment of a branch',
  description: 'Answers at once; a build that runs is joined. What it says: `GET /environments/{name}/events`.',
  security,
  request: { body: { required: true, ...json(buildEnvironmentRequestSchema, 'The branch to build') } },
  responses: { 202: json(environmentViewSchema, 'The environment.'), ...answers },
})

const getEnvironmentRoute = createRoute({
  method: 'get',
  path: '/environments/{name}',
  summary: 'One environment: its snapshots and its last build',
  security,
  request: { params: name },
  responses: { 200: json(environmentViewSchema, 'The environment.'), ...answers },
})

const rebuildEnvironmentRoute = createRoute({
  method: 'post',
  path: '/environments/{name}/build',
  summary: 'Build an environment again',
  description: 'Without `no_cache` a build ends at once where there is a snapshot with the same key.',
  security,
  request: { params: name, body: { required: true, ...json(rebuildEnvironmentRequestSchema, 'How') } },
  responses: { 202: json(environmentViewSchema, 'The environment.'), ...answers },
})

const environmentEventsRoute = createRoute({
  method: 'get',
  path: '/environments/{name}/events',
  summary: 'What the last build said',
  security,
  request: { params: name, query: z.object({ after: z.coerce.number().int().min(0).optional() }) },
  responses: {
    200: json(environmentEventsSchema, 'Events after that sequence, and how the build stands.'),
    ...answers,
  },
})

const removeEnvironmentRoute = createRoute({
  method: 'delete',
  path: '/environments/{name}',
  summary: 'Remove an environment and its snapshots; the next task builds it anew',
  security,
  request: { params: name },
  responses: { 204: { description: 'Gone, or going once no sandbox has a snapshot of it.' }, ...answers },
})

export function addEnvironmentRoutes(app: OpenAPIHono, environments: EnvironmentService): void {
  app.openapi(listEnvironmentsRoute, async (context) => context.json({ environments: await environments.list() }, 200))
  app.openapi(buildEnvironmentRoute, async (context) => {
    const environment = await environments.build(context.req.valid('json'))
    context.header('location', `/environments/${environment.name}`)
    return context.json(environment, 202)
  })
  app.openapi(getEnvironmentRoute, async (context) =>
    context.json(await environments.get(context.req.valid('param').name), 200),
  )
  app.openapi(rebuildEnvironmentRoute, async (context) =>
    context.json(await environments.rebuild(context.req.valid('param').name, context.req.valid('json')), 202),
  )
  app.openapi(environmentEventsRoute, async (context) => {
    const { after = 0 } = context.req.valid('query')
    return context.json(await environments.events(context.req.valid('param').name, after), 200)
  })
  app.openapi(removeEnvironmentRoute, async (context) => {
    await environments.remove(context.req.valid('param').name)
    return context.body(null, 204)
  })
}
