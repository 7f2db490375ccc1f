import { type Endpoint, endpointSchema } from '@corral/agents'
import { type NamedList, namedListFile } from '../named-list-file.js'

/** The named endpoints of a platform: servers that speak the API of a provider we know. */
export type EndpointStore = NamedList<Endpoint>

export function fileEndpointStore(path: string): EndpointStore {
  return namedListFile(path, { schema: endpointSchema, singular: 'endpoint', add: 'corral endpoint add' })
}
