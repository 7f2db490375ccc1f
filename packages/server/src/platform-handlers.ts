import { CorralError } from '@corral/protocol'
import type { TaskService } from '@corral/tasks'
import type { OpenAPIHono } from '@hono/zod-openapi'
import {
  createDemoRoute,
  getObjectRoute,
  listAgentsRoute,
  listPoolsRoute,
  listProvidersRoute,
  listSandboxesRoute,
  listSecretsRoute,
  removeSecretRoute,
  resizePoolRoute,
  setSecretRoute,
  testProviderRoute,
} from './platform-routes.js'
import type { PlatformService } from './platform-service.js'
import { addSettingsRoutes } from './settings-routes.js'
import { streamedChecks } from './streamed-checks.js'

/** Routes about the platform itself. `refuseWhenFull` throws where no new task may be taken. */
export function addPlatformHandlers(
  app: OpenAPIHono,
  platform: PlatformService,
  tasks: Pick<TaskService, 'create'>,
  refuseWhenFull: () => void,
): void {
  app.openapi(listAgentsRoute, async (context) => context.json({ agents: await platform.agents() }, 200))
  app.openapi(listSecretsRoute, async (context) => context.json({ secrets: await platform.secrets() }, 200))
  app.openapi(setSecretRoute, async (context) => {
    await platform.setSecret(context.req.valid('param').name, context.req.valid('json').value)
    return context.body(null, 204)
  })
  app.openapi(removeSecretRoute, async (context) => {
    await platform.removeSecret(context.req.valid('param').name)
    return context.body(null, 204)
  })
  app.openapi(listSandboxesRoute, async (context) => context.json({ sandboxes: await platform.sandboxes() }, 200))
  app.openapi(listPoolsRoute, async (context) => context.json({ pools: await platform.pools() }, 200))
  app.openapi(resizePoolRoute, async (context) =>
    context.json(await platform.resizePool(context.req.valid('param').name, context.req.valid('json').replicas), 200),
  )
  app.openapi(getObjectRoute, async (context) => {
    const { kind, name } = context.req.valid('param')
    return context.json(await platform.object(kind, name), 200)
  })
  addSettingsRoutes(app, platform.settings)
  app.openapi(listProvidersRoute, async (context) =>
    context.json({ providers: await platform.sandboxProviders() }, 200),
  )
  app.openapi(testProviderRoute, async (context) => {
    const { name } = context.req.valid('param')
    const provider = (await platform.sandboxProviders()).find((each) => each.name === name)
    if (!provider) throw new CorralError('NotFound', `there is no provider "${name}"`)
    // The platform's own has no settings of a provider: those of the platform say where it is.
    const look = (signal: AbortSignal) =>
      provider.settings ? platform.providerChecks(name, signal) : platform.settings.test({}, signal)
    return streamedChecks(context.req.raw.signal, look)
  })
  app.openapi(createDemoRoute, async (context) => {
    refuseWhenFull()
    const request = await platform.demo()
    if (!request)
      throw new CorralError('NotFound', 'this platform takes no repositories of its own disk, so it has no demo', {
        hint: 'Create a task on a repository of yours.',
      })
    const { task } = await tasks.create(request)
    return context.json({ id: task.id, status: task.status }, 201)
  })
}
