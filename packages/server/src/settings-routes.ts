import {
  errorBodySchema,
  kubeContextListSchema,
  kubeNameListSchema,
  patchSettingsRequestSchema,
  settingsViewSchema,
  testSettingsRequestSchema,
} from '@corral/protocol'
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { optionalBody } from './json-body.js'
import type { SettingsService } from './settings-service.js'
import { streamedChecks } from './streamed-checks.js'
import { errors, json, security } from './task-routes.js'
import { versionIn } from './version-in.js'

const contextQuery = z.object({ context: z.string().min(1).max(253).optional() })

const getSettingsRoute = createRoute({
  method: 'get',
  path: '/settings',
  summary: 'Where sandboxes run, and what tasks get that say nothing else',
  security,
  responses: { 200: json(settingsViewSchema, 'The settings; their revision is also the ETag.'), ...errors },
})

const changeSettingsRoute = createRoute({
  method: 'patch',
  path: '/settings',
  summary: 'Change settings',
  description:
    'A setting that is null is taken away. With `If-Match` or `revision` only where the settings still have this revision; 409 else. Limits hold for the next task; provider, context and namespace from the next start on.',
  security,
  request: {
    headers: z.object({ 'if-match': z.string().min(1).max(200).optional() }),
    body: { required: true, ...json(patchSettingsRequestSchema, 'What changes') },
  },
  responses: {
    200: json(settingsViewSchema, 'The settings as they are now.'),
    ...errors,
    409: json(errorBodySchema, 'They were changed since they were read.'),
  },
})

const testSettingsRoute = createRoute({
  method: 'post',
  path: '/settings/test',
  summary: 'Look at everything the platform needs of its cluster',
  description:
    'With settings that need not be saved. One JSON document a line: `{check, title, state, detail, remedy?, command?, ms}`. Each check stands alone.',
  security,
  request: { body: { required: false, ...json(testSettingsRequestSchema, 'Settings to look with') } },
  responses: {
    200: { description: 'Results as they come.', content: { 'application/x-ndjson': { schema: z.string() } } },
    ...errors,
  },
})

const listContextsRoute = createRoute({
  method: 'get',
  path: '/kubernetes/contexts',
  summary: "Contexts of the platform's kubeconfig, by name",
  security,
  responses: { 200: json(kubeContextListSchema, 'Contexts, without credentials.'), ...errors },
})

const listNamespacesRoute = createRoute({
  method: 'get',
  path: '/kubernetes/namespaces',
  summary: 'Namespaces of the cluster of a context',
  security,
  request: { query: contextQuery },
  responses: { 200: json(kubeNameListSchema, 'Names, or why they cannot be listed.'), ...errors },
})

const listRuntimeClassesRoute = createRoute({
  method: 'get',
  path: '/kubernetes/runtime-classes',
  summary: 'RuntimeClasses of the cluster of a context',
  security,
  request: { query: contextQuery },
  responses: { 200: json(kubeNameListSchema, 'Names, or why they cannot be listed.'), ...errors },
})

/** Settings of the platform, and what there is to choose from. */
export function addSettingsRoutes(app: OpenAPIHono, settings: SettingsService): void {
  app.use('/settings/test', optionalBody)
  app.openapi(getSettingsRoute, async (context) => {
    const view = await settings.get()
    context.header('etag', `"${view.revision}"`)
    return context.json(view, 200)
  })
  app.openapi(changeSettingsRoute, async (context) => {
    const revision = versionIn(context.req.header('if-match'))
    const view = await settings.change({ ...(revision ? { revision } : {}), ...context.req.valid('json') })
    context.header('etag', `"${view.revision}"`)
    return context.json(view, 200)
  })
  app.openapi(listContextsRoute, async (context) => context.json(await settings.contexts(), 200))
  app.openapi(listNamespacesRoute, async (context) =>
    context.json(await settings.namespaces(context.req.valid('query').context), 200),
  )
  app.openapi(listRuntimeClassesRoute, async (context) =>
    context.json(await settings.runtimeClasses(context.req.valid('query').context), 200),
  )
  app.openapi(testSettingsRoute, (context) => {
    const { settings: wanted = {} } = context.req.valid('json') ?? {}
    return streamedChecks(context.req.raw.signal, (signal) => settings.test(wanted, signal))
  })
}
