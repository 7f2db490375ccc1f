import { EndpointSlices } from '@corral/resources'
import { type FieldError, required } from '../errors/api-error.js'
import type { JsonObject } from '../objects/plain-json.js'
import { addressErrors, addressWarnings } from '../validation/addresses.js'
import { objectsIn, oneOf, subdomain } from '../validation/rules.js'
import { describeKind, type KindDefinition } from './kind-definition.js'

const ADDRESS_TYPES = ['FQDN', 'IPv4', 'IPv6']

/** EndpointSlices: kept by a controller, or by hand for a Service without a selector. */
export const endpointSliceKind: KindDefinition = describeKind(EndpointSlices, {
  generation: 'content',
  defaults(slice) {
    for (const endpoint of objectsIn(slice.endpoints)) endpoint.conditions ??= {}
    for (const port of objectsIn(slice.ports)) {
      port.name ??= ''
      port.protocol ??= 'TCP'
    }
  },
  prepareCreate: showEmptyLists,
  prepareUpdate: showEmptyLists,
  validate: ({ addressType, endpoints }) => [
    ...(addressType ? oneOf('addressType', addressType, ADDRESS_TYPES) : [required('addressType')]),
    ...objectsIn(endpoints).flatMap(({ addresses }, index) =>
      endpointErrors(Array.isArray(addresses) ? addresses : [], addressType, `endpoints[${index}].addresses`),
    ),
  ],
  warnings: ({ addressType, endpoints }) => {
    if (addressType === 'FQDN') return []
    return objectsIn(endpoints).flatMap(({ addresses }, index) => {
      const list = Array.isArray(addresses) ? addresses : []
      return list.flatMap((ip, at) => addressWarnings(`endpoints[${index}].addresses[${at}]`, ip))
    })
  },
})

/** Lists that Kubernetes shows even where there is none. */
function showEmptyLists(slice: JsonObject): void {
  slice.endpoints ??= null
  slice.ports ??= null
}

function endpointErrors(addresses: readonly unknown[], type: unknown, path: string): FieldError[] {
  if (addresses.length === 0) return [required(path, 'must contain at least 1 address')]
  return addresses.flatMap((address, index) => {
    const field = `${path}[${index}]`
    if (type === 'FQDN') return subdomain(field, address)
    return type === 'IPv4' || type === 'IPv6' ? addressErrors(field, address, type) : []
  })
}
