import type { ApiResponse } from '@corral/ports'
import { ConversionPending } from '../crd/webhook-converter.js'
import { prepareViews } from '../read/view.js'
import type { ResourceRequest } from './resource-request.js'

/** How often what a write makes of an object may turn out to be another than the one that was asked about. */
const MAX_ATTEMPTS = 5

/**
 * Carries out a request on a kind whose versions a webhook converts: views of what is there are fetched first, those
 * of what the request makes of it when they are found missing, which is before anything is written.
 */
export async function withConversions(
  resource: ResourceRequest,
  carryOut: (resource: ResourceRequest) => Promise<ApiResponse> | ApiResponse,
): Promise<ApiResponse> {
  const { kind, context, namespace = '', name } = resource
  const objects = context.store.collection(kind.collection)
  for (let attempt = 1; ; attempt++) {
    const named = name === undefined ? [] : [objects.find(namespace, name), objects.findHead(namespace, name)]
    const stored = name === undefined ? [...objects.list()] : named.filter((object) => object !== undefined)
    await prepareViews(kind, stored)
    try {
      return await carryOut(resource)
    } catch (error) {
      if (!(error instanceof ConversionPending) || attempt === MAX_ATTEMPTS) throw error
      await error.load()
    }
  }
}
