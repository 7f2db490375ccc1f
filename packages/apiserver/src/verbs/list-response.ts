import type { ApiResponse } from '@corral/ports'
import { type Listing, listText, listValue } from '../read/list.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import { jsonHeaders } from '../request/responses.js'

/** A list as an answer: in this process its items are the stored objects, on the wire they are in Kubernetes' form. */
export function listResponse(kind: KindDefinition, listing: Listing, warnings?: readonly string[]): ApiResponse {
  const value = listValue(kind, listing)
  return {
    status: 200,
    headers: jsonHeaders(warnings),
    body: { type: 'object', value, json: () => listText(kind, value) },
  }
}
