import { join } from 'node:path'
import type { Upstream } from '../ecosystem.js'
import type { HostSettings } from './host-settings.js'
import { netrcAuthorization } from './netrc.js'
import { registryFrom } from './registry-url.js'

/** pip prints its settings, and knows its own default index; an extra index is asked after the main one. */
export async function pypiUpstream(host: HostSettings): Promise<Upstream> {
  const settings = parsePipSettings((await host.run(['pip', 'config', 'list'])) ?? '')
  const main =
    host.env.PIP_INDEX_URL ??
    settings.get('index-url') ??
    host.env.UV_DEFAULT_INDEX ??
    (await host.run(['python3', '-c', 'from pip._internal.models.index import PyPI; print(PyPI.simple_url)']))?.trim()
  const extra = host.env.PIP_EXTRA_INDEX_URL ?? settings.get('extra-index-url') ?? ''
  const netrc = await host.readFile(host.env.NETRC ?? join(host.home, '.netrc'))
  return {
    registries: [main, ...extra.split(/\s+/)].flatMap((address) => {
      const registry = registryFrom(address)
      const found = registry && !registry.authorization && netrcAuthorization(netrc, registry.url.hostname)
      return registry ? [{ ...registry, ...(found && { authorization: found }) }] : []
    }),
  }
}

/** Lines such as `global.index-url='https://…'`. */
function parsePipSettings(text: string): Map<string, string> {
  const lines = text.matchAll(/^(?:global|install|:env:)\.([\w-]+)=(['"])(.*)\2$/gm)
  return new Map([...lines].map(([, name = '', , value = '']) => [name, value.replaceAll('\\n', ' ')]))
}
