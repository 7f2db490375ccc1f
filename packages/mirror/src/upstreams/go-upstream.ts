import { join } from 'node:path'
import type { Registry, Upstream } from '../ecosystem.js'
import type { HostSettings } from './host-settings.js'
import { netrcAuthorization } from './netrc.js'
import { registryFrom } from './registry-url.js'

/** `go env` knows the proxies, the user's `go env -w` included. `direct` means git hosts, which the mirror cannot be. */
export async function goUpstream(host: HostSettings): Promise<Upstream> {
  const proxies = host.env.GOPROXY ?? (await host.run(['go', 'env', 'GOPROXY']))?.trim() ?? ''
  const netrc = await host.readFile(host.env.NETRC ?? join(host.home, '.netrc'))
  const registries: Registry[] = []
  for (const [, address = '', separator] of proxies.matchAll(/([^,|]+)([,|]?)/g)) {
    const registry = registryFrom(address.trim())
    if (!registry) continue
    const authorization = registry.authorization ?? netrcAuthorization(netrc, registry.url.hostname)
    // After a bar Go asks the next proxy whatever went wrong, after a comma only where the module is not found.
    registries.push({
      ...registry,
      ...(authorization && { authorization }),
      ...(separator === '|' && { fallsBackOnError: true }),
    })
  }
  return { registries }
}
