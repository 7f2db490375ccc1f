import {
  createProjectRequestSchema,
  errorBodySchema,
  patchProjectRequestSchema,
  projectListSchema,
  projectViewSchema,
  replaceProjectRequestSchema,
} from '@corral/protocol'
import type { ProjectService } from '@corral/tasks'
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { errors, json, security } from './task-routes.js'
import { versionIn } from './version-in.js'

const name = z.object({ name: z.string().min(1).max(253).openapi({ example: 'shop' }) })
const ifMatch = z.object({ 'if-match': z.string().min(1).max(200).optional() })

const answers = {
  ...errors,
  404: json(errorBodySchema, 'There is no such project.'),
  409: json(errorBodySchema, 'There is one of this name already, or it was changed since it was read.'),
}

const listProjectsRoute = createRoute({
  method: 'get',
  path: '/projects',
  summary: 'Projects, by name',
  security,
  responses: { 200: json(projectListSchema, 'Projects.'), ...errors },
})

const createProjectRoute = createRoute({
  method: 'post',
  path: '/projects',
  summary: 'Make a project: settings that tasks get by naming it',
  security,
  request: { body: { required: true, ...json(createProjectRequestSchema, 'Its name and its settings') } },
  responses: { 201: json(projectViewSchema, 'The project.'), ...answers },
})

const getProjectRoute = createRoute({
  method: 'get',
  path: '/projects/{name}',
  summary: 'One project',
  security,
  request: { params: name },
  responses: { 200: json(projectViewSchema, 'The project; its version is also the ETag.'), ...answers },
})

const versions =
  'With `If-Match` or `resource_version` only where the project still has this version; 409 else. Tasks that exist keep what they got.'

const replaceProjectRoute = createRoute({
  method: 'put',
  path: '/projects/{name}',
  summary: 'Give a project all its settings anew',
  description: `What is left out is gone. ${versions}`,
  security,
  request: {
    params: name,
    headers: ifMatch,
    body: { required: true, ...json(replaceProjectRequestSchema, 'Its settings') },
  },
  responses: { 200: json(projectViewSchema, 'The project as it is now.'), ...answers },
})

const changeProjectRoute = createRoute({
  method: 'patch',
  path: '/projects/{name}',
  summary: 'Change some settings of a project',
  description: `A setting that is null is taken away. ${versions}`,
  security,
  request: {
    params: name,
    headers: ifMatch,
    body: { required: true, ...json(patchProjectRequestSchema, 'What changes') },
  },
  responses: { 200: json(projectViewSchema, 'The project as it is now.'), ...answers },
})

const removeProjectRoute = createRoute({
  method: 'delete',
  path: '/projects/{name}',
  summary: 'Remove a project; its tasks stay',
  security,
  request: { params: name },
  responses: { 204: { description: 'Gone.' }, ...answers },
})

export function addProjectRoutes(app: OpenAPIHono, projects: ProjectService): void {
  app.openapi(listProjectsRoute, async (context) => context.json({ projects: await projects.list() }, 200))
  app.openapi(createProjectRoute, async (context) => {
    const project = await projects.create(context.req.valid('json'))
    context.header('location', `/projects/${project.name}`)
    context.header('etag', etagOf(project.resource_version))
    return context.json(project, 201)
  })
  app.openapi(getProjectRoute, async (context) => {
    const project = await projects.get(context.req.valid('param').name)
    context.header('etag', etagOf(project.resource_version))
    return context.json(project, 200)
  })
  app.openapi(replaceProjectRoute, async (context) => {
    const request = { ...wantedVersion(context.req.header('if-match')), ...context.req.valid('json') }
    const project = await projects.replace(context.req.valid('param').name, request)
    context.header('etag', etagOf(project.resource_version))
    return context.json(project, 200)
  })
  app.openapi(changeProjectRoute, async (context) => {
    const request = { ...wantedVersion(context.req.header('if-match')), ...context.req.valid('json') }
    const project = await projects.change(context.req.valid('param').name, request)
    context.header('etag', etagOf(project.resource_version))
    return context.json(project, 200)
  })
  app.openapi(removeProjectRoute, async (context) => {
    await projects.remove(context.req.valid('param').name)
    return context.body(null, 204)
  })
}

const etagOf = (version: string): string => `"${version}"`

function wantedVersion(header: string | undefined): { resource_version?: string } {
  const version = versionIn(header)
  return version === undefined ? {} : { resource_version: version }
}
