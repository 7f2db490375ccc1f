import * as z from 'zod'
import type { Provider } from './provider.js'
import { findProvider, providers } from './provider-registry.js'

export interface Endpoint {
  name: string
  kind: string
  base_url: string
}

/** A server that speaks the API of a provider we know, under a name of the user's choice. */
export const endpointSchema: z.ZodType<Endpoint> = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,40}$/, 'must be lower-case letters, digits and dashes, beginning with a letter')
    .refine((name) => !providers.has(name), 'is the name of a provider'),
  kind: z.string().refine((kind) => providers.has(kind), `must be one of ${[...providers.keys()].join(', ')}`),
  base_url: z
    .url({ protocol: /^https?$/, error: 'must be an http:// or https:// address' })
    .max(2048, 'must be at most 2048 characters long'),
})

/** The name of the secret that holds an endpoint's key. */
export const endpointSecret = (name: string): string => `endpoint-${name}`

/** An endpoint as a provider. Its key is optional and its prices are unknown: what runs there need not be the original. */
export function endpointProvider({ name, kind, base_url }: Endpoint): Provider {
  const base = findProvider(kind)
  if (!base) throw new TypeError(`there is no provider "${kind}"`)
  return {
    ...base,
    name,
    title: name,
    defaultBaseUrl: base_url,
    secret: endpointSecret(name),
    keyVariable: undefined,
    baseUrlVariable: undefined,
    isKeyOptional: true,
    prices: {},
  }
}
