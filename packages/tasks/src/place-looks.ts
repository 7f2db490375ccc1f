import { createInformer, type Informer } from '@corral/kube'
import { type AgentTask, type SandboxClaim, SandboxClaims, type Stored } from '@corral/resources'
import { placeClient, taskUidLabel } from './places/place-client.js'
import { foreignProviderOf, type SandboxPlace } from './places/sandbox-place.js'
import type { StepOptions, TaskControllerOptions } from './task-controller-options.js'
import { TaskError } from './task-error.js'
import { taskLabel } from './task-state/task-marks.js'

/** The controller's options as one task sees them, and the place of its sandbox where that is another cluster. */
export type Look = StepOptions & { readonly place: SandboxPlace | undefined }

export interface PlaceLooks {
  /** Undefined where the provider of the task is gone. */
  of(task: Stored<AgentTask>): Promise<Look | undefined>
  /** The same for a step, which fails without its provider. */
  step(task: Stored<AgentTask>): Promise<Look>
  stop(): Promise<void>
}

/** Looks at tasks from where their sandboxes are, and watches the claims of every cluster that is used. */
export function createPlaceLooks(
  options: TaskControllerOptions,
  { signal, onClaim }: { signal: AbortSignal; onClaim(taskName: string): void },
): PlaceLooks {
  const own: Look = { ...options, place: undefined }
  const watched = new Map<string, { look: Look; claims: Informer<SandboxClaim> }>()

  async function look(place: SandboxPlace): Promise<Look> {
    const known = watched.get(place.name)
    if (known?.look.place === place) return known.look
    await known?.claims.stop()
    const away = await place.provider.kube()
    const client = placeClient(options.client, away, { home: options.namespace, away: place.namespace })
    const claims = createInformer({
      client: away,
      kind: SandboxClaims,
      namespace: place.namespace,
      labelSelector: taskUidLabel,
      log: options.log,
      signal,
    })
    claims.hasSynced.catch(() => undefined) // a cluster that is away is told by the task that needs it
    const tell = ({ metadata }: Stored<SandboxClaim>): void => {
      const name = metadata.labels?.[taskLabel]
      if (name) onClaim(name)
      if (name !== metadata.name) onClaim(metadata.name)
    }
    claims.subscribe({ add: tell, update: tell, delete: tell })
    const { packageClients: _, isolation: __, ...rest } = options
    const made: Look = {
      ...rest,
      place,
      client,
      sandboxes: place.sandboxes,
      broker: { ...options.broker, baseUrl: place.brokerUrl },
      hasEgressByName: place.hasEgressByName,
      ...(place.packageClients ? { packageClients: place.packageClients } : {}),
      ...(place.isolation === undefined ? {} : { isolation: place.isolation }),
    }
    watched.set(place.name, { look: made, claims })
    return made
  }

  const of = async (task: Stored<AgentTask>): Promise<Look | undefined> => {
    const provider = foreignProviderOf(task)
    if (provider === undefined || provider === options.places?.own) return own
    const place = await options.places?.find(provider)
    return place && look(place)
  }
  return {
    of,
    async step(task) {
      const seen = await of(task)
      if (!seen) throw new TaskError('ProviderUnreachable', `there is no provider "${foreignProviderOf(task)}"`)
      return seen
    },
    async stop() {
      for (const { claims } of watched.values()) await claims.stop()
    },
  }
}
