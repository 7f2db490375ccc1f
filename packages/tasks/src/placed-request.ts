import type { CompleteTaskRequest } from '@corral/protocol'
import { placeClient, type TaskClient } from './places/place-client.js'
import type { SandboxPlace } from './places/sandbox-place.js'
import { TaskError } from './task-error.js'
import type { TaskServiceOptions } from './task-service-options.js'

/** What is known of sandboxes where a task's would be. */
export type Seen = Omit<TaskServiceOptions, 'client'> & { client: TaskClient; place: SandboxPlace | undefined }

/**
 * The request with the provider it will have, so that a later change of the default moves no task, and the options as they
 * are seen from there. `Invalid` for a provider that was not added.
 */
export async function placedRequest(
  request: CompleteTaskRequest,
  options: TaskServiceOptions,
): Promise<{ request: CompleteTaskRequest; seen: Seen }> {
  const { places } = options
  const name = request.sandbox?.provider ?? places?.fallback
  const { provider: _, ...sandbox } = request.sandbox ?? {}
  if (name === undefined || name === places?.own) {
    const own = request.sandbox?.provider === undefined ? request : { ...request, sandbox }
    return { request: own, seen: { ...options, place: undefined } }
  }
  const place = await places?.find(name)
  if (!place) {
    const names = (await places?.names()) ?? []
    throw new TaskError('Invalid', `sandbox.provider: there is no provider "${name}"`, {
      hint: `There is ${names.join(', ') || 'none'}; add one with \`corral provider add\`.`,
    })
  }
  const client = placeClient(options.client, await place.provider.kube(), {
    home: options.namespace,
    away: place.namespace,
  })
  const { isInstalled: __, ...rest } = options
  const seen = { ...rest, client, place, isolation: place.isolation, hasEgressByName: place.hasEgressByName }
  return { request: { ...request, sandbox: { ...sandbox, provider: name } }, seen }
}
