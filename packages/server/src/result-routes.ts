import {
  appliedChangeSchema,
  applyRequestSchema,
  artifactListSchema,
  changedFilesSchema,
  fileRefSchema,
} from '@corral/protocol'
import type { TaskService } from '@corral/tasks'
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi'
import { byteStream } from './byte-stream.js'
import { errors, id, json, security } from './task-routes.js'

const range = {
  offset: z.coerce.number().int().min(0).optional().openapi({ description: 'First byte of the part that is wanted.' }),
  limit: z.coerce.number().int().min(1).optional().openapi({ description: 'Bytes at most.' }),
}
const bytes = { 'application/octet-stream': { schema: z.string() } }

const taskDiffRoute = createRoute({
  method: 'get',
  path: '/tasks/{id}/diff',
  summary: 'The accepted change as a patch, whole or of one file',
  security,
  request: { params: id, query: z.object({ path: z.string().min(1).max(4096).optional(), ...range }) },
  responses: {
    200: { description: 'The patch; empty without a change.', content: { 'text/x-diff': { schema: z.string() } } },
    ...errors,
  },
})

const taskFilesRoute = createRoute({
  method: 'get',
  path: '/tasks/{id}/files',
  summary: 'The files a task changed',
  security,
  request: { params: id },
  responses: { 200: json(changedFilesSchema, 'The files, in the order of the patch.'), ...errors },
})

const taskFileRoute = createRoute({
  method: 'get',
  path: '/tasks/{id}/files/{path}',
  summary: 'One file of the result or of its base',
  description:
    'The path is one part of the address, its slashes as `%2F`. `x-corral-size` is the size of the whole file.',
  security,
  request: {
    params: id.extend({ path: z.string().openapi({ example: 'src%2Fmain.ts' }) }),
    query: z.object({ ref: fileRefSchema.optional(), ...range }),
  },
  responses: { 200: { description: 'The bytes of the file.', content: bytes }, ...errors },
})

const taskApplyRoute = createRoute({
  method: 'post',
  path: '/tasks/{id}/apply',
  summary: 'Bring the change into the work tree of its repository',
  description:
    'Where the repository lies on the machine of the platform: merged into the branch that is checked out, or as edits that are not committed. A work tree with changes of its own, on another branch or with a conflict is refused, and stays as it is.',
  security,
  request: { params: id, body: { required: true, ...json(applyRequestSchema, 'How') } },
  responses: { 200: json(appliedChangeSchema, 'What the work tree has now.'), ...errors },
})

const taskArtifactsRoute = createRoute({
  method: 'get',
  path: '/tasks/{id}/artifacts',
  summary: 'Files kept with the task',
  security,
  request: { params: id },
  responses: { 200: json(artifactListSchema, 'Their names and sizes.'), ...errors },
})

const taskArtifactRoute = createRoute({
  method: 'get',
  path: '/tasks/{id}/artifacts/{name}',
  summary: 'One kept file, as a download',
  security,
  request: { params: id.extend({ name: z.string() }) },
  responses: { 200: { description: 'The bytes of the file.', content: bytes }, ...errors },
})

/** What a task left behind: its change in pieces, its files, its artifacts. */
export function addResultRoutes(app: OpenAPIHono, tasks: TaskService): void {
  app.openapi(taskDiffRoute, async (context) => {
    const patch = await tasks.diff(context.req.valid('param').id, context.req.valid('query'))
    // Without a charset: a patch holds the bytes of files in any encoding.
    return byteStream(patch, { 'content-type': 'text/x-diff' }) as never
  })
  app.openapi(taskFilesRoute, async (context) => context.json(await tasks.files(context.req.valid('param').id), 200))
  app.openapi(taskFileRoute, async (context) => {
    const { id: taskId, path } = context.req.valid('param')
    const { ref = 'head', ...part } = context.req.valid('query')
    const { signal } = context.req.raw
    const { sizeBytes, content } = await tasks.file(taskId, { path, ref, signal, ...part })
    return byteStream(content, download('application/octet-stream', { 'x-corral-size': String(sizeBytes) })) as never
  })
  app.openapi(taskApplyRoute, async (context) =>
    context.json(await tasks.apply(context.req.valid('param').id, context.req.valid('json').how), 200),
  )
  app.openapi(taskArtifactsRoute, async (context) =>
    context.json({ artifacts: await tasks.artifacts(context.req.valid('param').id) }, 200),
  )
  app.openapi(taskArtifactRoute, async (context) => {
    const { id: taskId, name } = context.req.valid('param')
    const { sizeBytes, content } = await tasks.artifact(taskId, name)
    const headers = { 'content-length': String(sizeBytes), 'content-disposition': `attachment; filename="${name}"` }
    return byteStream(content, download('application/octet-stream', headers)) as never
  })
}

/** A sandbox wrote it: no browser may take it for a page of this server. */
function download(type: string, headers: Record<string, string>): Record<string, string> {
  return {
    'content-type': type,
    'content-security-policy': "default-src 'none'; sandbox",
    ...headers,
  }
}
