import {
  answerQuestionRequestSchema,
  approvePlanRequestSchema,
  createTaskRequestSchema,
  createTaskResponseSchema,
  errorBodySchema,
  messageDeliverySchema,
  projectNameSchema,
  rejectPlanRequestSchema,
  retryTaskRequestSchema,
  revisePlanRequestSchema,
  taskListSchema,
  taskMessageRequestSchema,
  taskPhaseSchema,
  taskViewSchema,
} from '@corral/protocol'
import { createRoute, z } from '@hono/zod-openapi'

/** The routes of the task API as data: the handlers and the OpenAPI document are made from the same. */

export const json = <T extends z.ZodType>(schema: T, description: string) => ({
  content: { 'application/json': { schema } },
  description,
})

export const errors = {
  400: json(errorBodySchema, 'The request is malformed.'),
  401: json(errorBodySchema, 'The platform token is missing or wrong.'),
  404: json(errorBodySchema, 'There is no such task.'),
  409: json(errorBodySchema, 'The task is in a state that does not allow this.'),
  422: json(errorBodySchema, 'A value is not allowed.'),
}
const bodyErrors = {
  ...errors,
  413: json(errorBodySchema, 'The body is larger than allowed.'),
  415: json(errorBodySchema, 'The body is declared as something else than JSON.'),
}

export const security = [{ token: [] }]
export const id = z.object({ id: z.string().openapi({ example: 'task-b4x9m2k7qz' }) })
const text = { 'text/plain': { schema: z.string() } }

export const createTaskRoute = createRoute({
  method: 'post',
  path: '/tasks',
  summary: 'Run an agent on a repository',
  description:
    'Answers at once; the task goes on by itself. An Idempotency-Key makes a repeat return the first task. With `attempts` there are several tasks, all or none: `id` is the first.',
  security,
  request: {
    headers: z.object({ 'idempotency-key': z.string().min(1).max(255).optional() }),
    body: { required: true, ...json(createTaskRequestSchema, 'What to do, and where') },
  },
  responses: { 201: json(createTaskResponseSchema, 'Accepted.'), ...bodyErrors },
})

export const listTasksRoute = createRoute({
  method: 'get',
  path: '/tasks',
  summary: 'Tasks, newest first',
  security,
  request: {
    query: z.strictObject({
      status: taskPhaseSchema.optional(),
      group: z.string().max(253).optional(),
      project: projectNameSchema.optional(),
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
    headers: z.object({ 'last-event-id': z.coerce.number().int().min(0).optional() }),
    query: z.strictObject({
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
  description:
    'Begins with the stage that failed, or the one `from` names: `push` takes the commits that are kept, `agent` the same base and environment, `start` nothing. The former task stays as it is.',
  security,
  request: {
    params: id,
    headers: z.object({ 'idempotency-key': z.string().min(1).max(255).optional() }),
    body: { required: false, ...json(retryTaskRequestSchema, 'Where to begin; may be left out') },
  },
  responses: { 201: json(createTaskResponseSchema, 'The new task.'), ...bodyErrors },
})

export const taskMessageRoute = createRoute({
  method: 'post',
  path: '/tasks/{id}/messages',
  summary: 'Say the next thing: go on from an ended task, or tell the agent of one that runs',
  description:
    'The new task works from the former’s commit on its branch, in the same environment, with the agent’s session resumed. A second follow-up to the same task gets a branch of its own. A task that has not ended answers 202: `steered` where the agent is given the message while it runs, else `queued`. What the agent did not read becomes the follow-up.',
  security,
  request: {
    params: id,
    headers: z.object({ 'idempotency-key': z.string().min(1).max(255).optional() }),
    body: { required: true, ...json(taskMessageRequestSchema, 'What to say') },
  },
  responses: {
    201: json(createTaskResponseSchema, 'The new task, which continues this one.'),
    202: json(messageDeliverySchema, 'The task has not ended: how the message is delivered.'),
    ...bodyErrors,
  },
})

const decisionAnswers = {
  202: json(taskViewSchema, 'The decision is taken; the task goes on with it.'),
  ...bodyErrors,
  409: json(errorBodySchema, 'No plan waits, it was decided, revised or expired: the code and the message say which.'),
}

export const approvePlanRoute = createRoute({
  method: 'post',
  path: '/tasks/{id}/approve',
  summary: 'Let the agent carry out its plan',
  description: 'Names the `revision` that was read. `plan` replaces the plan where it was changed.',
  security,
  request: { params: id, body: { required: true, ...json(approvePlanRequestSchema, 'Which plan') } },
  responses: decisionAnswers,
})

export const revisePlanRoute = createRoute({
  method: 'post',
  path: '/tasks/{id}/revise',
  summary: 'Let the agent plan again',
  security,
  request: { params: id, body: { required: true, ...json(revisePlanRequestSchema, 'Which plan, and what to change') } },
  responses: decisionAnswers,
})

export const rejectPlanRoute = createRoute({
  method: 'post',
  path: '/tasks/{id}/reject',
  summary: 'End the task instead of carrying out its plan',
  security,
  request: { params: id, body: { required: true, ...json(rejectPlanRequestSchema, 'Which plan, and why') } },
  responses: decisionAnswers,
})

export const answerQuestionRoute = createRoute({
  method: 'post',
  path: '/tasks/{id}/answers',
  summary: 'Answer a question of the agent',
  description: 'Names the `question` and an `option` of it, or an `answer` in words. The agent goes on with it.',
  security,
  request: { params: id, body: { required: true, ...json(answerQuestionRequestSchema, 'Which question, and what') } },
  responses: {
    202: json(taskViewSchema, 'The answer is taken; the agent is told.'),
    ...bodyErrors,
    409: json(
      errorBodySchema,
      'No such question waits, it was answered or expired: the code and the message say which.',
    ),
  },
})

export const removeTaskRoute = createRoute({
  method: 'delete',
  path: '/tasks/{id}',
  summary: 'Take a task and its record away',
  description:
    'An ended task is gone a moment later. One that still runs answers 409, unless `force=true`: then it is cancelled, its work so far is pushed, and it goes after that.',
  security,
  request: { params: id, query: z.strictObject({ force: z.enum(['true', 'false']).optional() }) },
  responses: { 202: json(taskViewSchema, 'The task as it was.'), ...errors },
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
