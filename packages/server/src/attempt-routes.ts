import { createTaskResponseSchema, groupViewSchema, pickTaskRequestSchema, taskViewSchema } from '@corral/protocol'
import type { TaskService } from '@corral/tasks'
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { optionalBody } from './json-body.js'
import { errors, id, json, security } from './task-routes.js'

const groupRoute = createRoute({
  method: 'get',
  path: '/groups/{name}',
  summary: 'Several attempts side by side',
  description: 'Every attempt with its outcome, checks, diff stat, usage and times, the first one first.',
  security,
  request: { params: z.object({ name: z.string().max(253).openapi({ example: 'group-b4x9m2k7qz' }) }) },
  responses: { 200: json(groupViewSchema, 'The attempts.'), ...errors },
})

const pickRoute = createRoute({
  method: 'post',
  path: '/tasks/{id}/pick',
  summary: 'Give one of several attempts the branch that was asked for',
  description:
    'Makes a task without agent or sandbox that pushes the kept commit. The same attempt again answers the same task; another one answers 409, unless `force` is set.',
  security,
  request: { params: id, body: { required: false, ...json(pickTaskRequestSchema, 'May be left out') } },
  responses: {
    201: json(createTaskResponseSchema, 'The task that pushes it.'),
    ...errors,
  },
})

const releaseRoute = createRoute({
  method: 'post',
  path: '/tasks/{id}/release',
  summary: 'Let the sandbox go that an ended task holds for a follow-up',
  description: 'Safe to repeat. A follow-up that comes later begins in a sandbox of its own.',
  security,
  request: { params: id },
  responses: { 202: json(taskViewSchema, 'The task; its sandbox goes a moment later.'), ...errors },
})

/** Attempts and held sandboxes. */
export function addAttemptRoutes(
  app: OpenAPIHono,
  tasks: Pick<TaskService, 'group' | 'pick' | 'release'>,
  refuseWhenFull: () => void,
): void {
  app.use('/tasks/:id/pick', optionalBody)
  app.openapi(groupRoute, async (context) => context.json(await tasks.group(context.req.valid('param').name), 200))
  app.openapi(pickRoute, async (context) => {
    refuseWhenFull()
    const { task, isReplay } = await tasks.pick(context.req.valid('param').id, context.req.valid('json'))
    if (isReplay) context.header('idempotent-replay', 'true')
    context.header('location', `/tasks/${task.id}`)
    return context.json({ id: task.id, status: task.status }, 201)
  })
  app.openapi(releaseRoute, async (context) => context.json(await tasks.release(context.req.valid('param').id), 202))
}
