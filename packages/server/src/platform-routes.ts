import {
  agentListSchema,
  createTaskResponseSchema,
  errorBodySchema,
  objectViewSchema,
  poolInfoSchema,
  poolListSchema,
  resizePoolRequestSchema,
  sandboxListSchema,
  sandboxProviderListSchema,
  secretListSchema,
  setSecretRequestSchema,
  shownKinds,
} from '@corral/protocol'
import { createRoute, z } from '@hono/zod-openapi'

/** The routes about the platform itself, as data. */

const json = <T extends z.ZodType>(schema: T, description: string) => ({
  content: { 'application/json': { schema } },
  description,
})
const security = [{ token: [] }, { session: [] }]
const errors = {
  400: json(errorBodySchema, 'The request is malformed.'),
  401: json(errorBodySchema, 'No token, and no session of a browser.'),
  404: json(errorBodySchema, 'There is no such thing.'),
  422: json(errorBodySchema, 'A value is not allowed.'),
}
const name = z.object({ name: z.string().min(1).max(253) })

export const listAgentsRoute = createRoute({
  method: 'get',
  path: '/agents',
  summary: 'The agents a task may name, and whether they are ready',
  security,
  responses: { 200: json(agentListSchema, 'Agents.'), ...errors },
})

export const listSecretsRoute = createRoute({
  method: 'get',
  path: '/secrets',
  summary: 'Names of the secrets that are set or wanted; never their values',
  security,
  responses: { 200: json(secretListSchema, 'Names.'), ...errors },
})

export const setSecretRoute = createRoute({
  method: 'put',
  path: '/secrets/{name}',
  summary: 'Keep a secret, such as the key of a model provider',
  security,
  request: { params: name, body: { required: true, ...json(setSecretRequestSchema, 'Its value') } },
  responses: { 204: { description: 'Kept.' }, ...errors },
})

export const removeSecretRoute = createRoute({
  method: 'delete',
  path: '/secrets/{name}',
  summary: 'Forget a secret',
  security,
  request: { params: name },
  responses: { 204: { description: 'Gone.' }, ...errors },
})

export const listSandboxesRoute = createRoute({
  method: 'get',
  path: '/sandboxes',
  summary: 'Sandboxes: warm ones, and those that tasks hold',
  security,
  responses: { 200: json(sandboxListSchema, 'Sandboxes.'), ...errors },
})

export const listPoolsRoute = createRoute({
  method: 'get',
  path: '/pools',
  summary: 'Pools of warm sandboxes',
  security,
  responses: { 200: json(poolListSchema, 'Pools.'), ...errors },
})

export const resizePoolRoute = createRoute({
  method: 'patch',
  path: '/pools/{name}',
  summary: 'Keep another number of sandboxes warm',
  security,
  request: { params: name, body: { required: true, ...json(resizePoolRequestSchema, 'How many') } },
  responses: { 200: json(poolInfoSchema, 'The pool.'), ...errors },
})

export const getObjectRoute = createRoute({
  method: 'get',
  path: '/objects/{kind}/{name}',
  summary: 'The Kubernetes object behind something that is shown, with its events',
  security,
  request: { params: z.object({ kind: z.enum(shownKinds), name: z.string().min(1).max(253) }) },
  responses: { 200: json(objectViewSchema, 'The object.'), ...errors },
})

export const listProvidersRoute = createRoute({
  method: 'get',
  path: '/providers',
  summary: 'Where sandboxes of tasks may come from: this platform, and clusters it was given',
  security,
  responses: { 200: json(sandboxProviderListSchema, 'Providers.'), ...errors },
})

export const testProviderRoute = createRoute({
  method: 'post',
  path: '/providers/{name}/test',
  summary: 'Look at everything the platform needs of the cluster of a provider',
  description: 'As `POST /settings/test`, which is the same for the provider of the platform itself.',
  security,
  request: { params: name },
  responses: {
    200: { description: 'Results as they come.', content: { 'application/x-ndjson': { schema: z.string() } } },
    ...errors,
  },
})

export const createDemoRoute = createRoute({
  method: 'post',
  path: '/demo',
  summary: 'Run a demo task that needs neither key nor agent',
  security,
  responses: { 201: json(createTaskResponseSchema, 'Accepted.'), ...errors },
})
