import type { KubeClient } from '@corral/kube'
import type { PriorityGate } from '@corral/runtime'

/** The same server, with writes of low priority. */
export function lowPriorityClient(client: KubeClient, priorities: PriorityGate): KubeClient {
  const wait = <T>(run: () => Promise<T>, options: { signal?: AbortSignal | undefined } | undefined): Promise<T> =>
    priorities.low(run, options?.signal)
  return {
    ...client,
    create: (kind, object, options) => wait(() => client.create(kind, object, options), options),
    update: (kind, object, options) => wait(() => client.update(kind, object, options), options),
    patch: (kind, ref, patch, options) => wait(() => client.patch(kind, ref, patch, options), options),
    delete: (kind, ref, options) => wait(() => client.delete(kind, ref, options), options),
  }
}
