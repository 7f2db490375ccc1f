import {
  createTaskRequestSchema,
  createTaskResponseSchema,
  errorBodySchema,
  taskListSchema,
  taskPhaseSchema,
  taskViewSchema,
} from '@corral/protocol'
import { createRoute, z } from '@hono/zod-openapi'

/** The routes of the task API as data: the handlers and the OpenAPI document are made from the same. */

const json = <T extends z.ZodType>(schema: T, description: string) => ({
  content: { 'application/json': { schema } },
  description,
})

const errors = {
  400: json(errorBodySchema, 'The request is malformed.'),
  401: json(errorBodySchema, 'The platform token is missing or wrong.'),
  404: json(errorBodySchema, 'There is no such task.'),
  409: json(errorBodySchema, 'The task is in a state that does not allow this.'),
  422: json(errorBodySchema, 'A value is not allowed.'),
}

const security = [{ token: [] }]
const id = z.object({ id: z.string().openapi({ example: 'task-b4x9m2k7qz' }) })
const text = { 'text/plain': { schema: z.string() } }

export const createTaskRoute = createRoute({
  method: 'post',
  path: '/tasks',
  summary: 'Run an agent on a repository',
  description: 'Answers at once; the task goes on by itself. An Idempotency-Key makes a repeat return the first task.',
  security,
  request: {
    headers: z.object({ 'idempotency-key': z.string().min(1).max(255).optional() }),
    body: { required: true, ...json(createTaskRequestSchema, 'What to do, and where') },
  },
  responses: { 201: json(createTaskResponseSchema, 'Accepted.'), ...errors },
})

export const listTasksRoute = createRoute({
  method: 'get',
  path: '/tasks',
  summary: 'Tasks, newest first',
  security,
  request: {
    query: z.object({
      status: taskPhaseSchema.optional(),
      limit: z.coerce.number().int().min(1).max(500).optional(),
      after: z.string().max(253).optional(),
    }),
  },
  responses: { 200: json(taskListSchema, 'A page of tasks; `next` is the `after` of the next page.'), ...errors },
})

export const getTaskRoute = createRoute({
  method: 'get',
  path: '/tasks/{id}',
  summary: 'One task',
  security,
  request: { params: id },
  responses: { 200: json(taskViewSchema, 'The task.'), ...errors },
})

export const taskEventsRoute = createRoute({
  method: 'get',
  path: '/tasks/{id}/events',
  summary: 'The events of a task, from any sequence, live',
  description:
    'Server-sent events with `Accept: text/event-stream` (`Last-Event-ID` resumes), else NDJSON. Ends after the `result` event.',
  security,
  request: {
    params: id,
    query: z.object({
      after: z.coerce.number().int().min(0).optional(),
      follow: z.enum(['true', 'false']).optional(),
    }),
  },
  responses: {
    200: {
      description: 'Events.',
      content: { 'text/event-stream': { schema: z.string() }, 'application/x-ndjson': { schema: z.string() } },
    },
    ...errors,
  },
})

export const taskLogsRoute = createRoute({
  method: 'get',
  path: '/tasks/{id}/logs',
  summary: 'What the agent wrote, as it wrote it',
  security,
  request: { params: id },
  responses: { 200: { description: 'Raw output so far.', content: text }, ...errors },
})

export const taskDiffRoute = createRoute({
  method: 'get',
  path: '/tasks/{id}/diff',
  summary: 'The accepted change as a patch',
  security,
  request: { params: id },
  responses: {
    200: { description: 'The patch; empty without a change.', content: { 'text/x-diff': { schema: z.string() } } },
    ...errors,
  },
})

export const cancelTaskRoute = createRoute({
  method: 'post',
  path: '/tasks/{id}/cancel',
  summary: 'Stop a task; work done so far is kept',
  security,
  request: { params: id },
  responses: { 202: json(taskViewSchema, 'The task will end as CANCELLED.'), ...errors },
})

export const retryTaskRoute = createRoute({
  method: 'post',
  path: '/tasks/{id}/retry',
  summary: 'Run an ended task again, as a new task',
  security,
  request: { params: id },
  responses: { 201: json(createTaskResponseSchema, 'The new task.'), ...errors },
})

export const healthRoute = createRoute({
  method: 'get',
  path: '/healthz',
  summary: 'Whether the platform is alive',
  responses: { 200: { description: 'It is.', content: text } },
})

export const readyRoute = createRoute({
  method: 'get',
  path: '/readyz',
  summary: 'Whether everything behind the API works',
  responses: {
    200: { description: 'It does.', content: text },
    503: { description: 'Not yet, or no longer.', content: text },
  },
})

export const metricsRoute = createRoute({
  method: 'get',
  path: '/metrics',
  summary: 'Counters for Prometheus',
  security,
  responses: { 200: { description: 'The text format.', content: text }, 401: errors[401] },
})
