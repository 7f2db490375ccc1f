import { join } from 'node:path'
import type { Registry, Upstream } from '../ecosystem.js'
import type { HostSettings } from './host-settings.js'
import { registryFrom } from './registry-url.js'

/** Cargo's source replacement where the user has one, else the index that Cargo asks by itself. */
export async function cratesUpstream(host: HostSettings, fetcher: typeof fetch): Promise<Upstream> {
  const home = host.env.CARGO_HOME ?? join(host.home, '.cargo')
  const config = (await host.readFile(join(home, 'config.toml'))) ?? (await host.readFile(join(home, 'config'))) ?? ''
  const index = replacement(config) ?? (await host.cargoDefaultIndex())
  const registry = registryFrom(index?.replace(/^sparse\+/, ''), (await token(host, home, config, index)) ?? undefined)
  return { registries: registry ? [await withDownload(registry, fetcher)] : [] }
}

/** The `registry` of the source that replaces crates-io, through as many steps as there are. */
function replacement(config: string): string | undefined {
  const sources = new Map<string, { next?: string; registry?: string }>()
  for (const [, name = '', body = ''] of config.matchAll(/^\s*\[source\.["']?([\w-]+)["']?\]([^[]*)/gm)) {
    const next = setting(body, 'replace-with')
    const registry = setting(body, 'registry')
    sources.set(name, { ...(next && { next }), ...(registry && { registry }) })
  }
  let at = sources.get('crates-io')
  for (let steps = 0; at?.next && steps < 10; steps += 1) at = sources.get(at.next)
  return at?.registry
}

/** Tokens are kept by the registry's name: `[registries.NAME]` in the configuration, the token in `credentials.toml`. */
async function token(host: HostSettings, home: string, config: string, index?: string): Promise<string | undefined> {
  for (const [, name = '', body = ''] of config.matchAll(/^\s*\[registries\.["']?([\w-]+)["']?\]([^[]*)/gm)) {
    if (setting(body, 'index') !== index) continue
    const variable = host.env[`CARGO_REGISTRIES_${name.toUpperCase().replaceAll('-', '_')}_TOKEN`]
    const credentials = (await host.readFile(join(home, 'credentials.toml'))) ?? ''
    const section = new RegExp(`^\\s*\\[registries\\.["']?${name}["']?\\]([^[]*)`, 'm').exec(credentials)?.[1] ?? ''
    return variable ?? setting(section, 'token')
  }
  return undefined
}

const setting = (section: string, name: string): string | undefined =>
  new RegExp(`^\\s*${name}\\s*=\\s*["']([^"']*)["']`, 'm').exec(section)?.[1]

/** Where crates lie is told by the index. Without an answer the index still works and crates are not found. */
async function withDownload(registry: Registry, fetcher: typeof fetch): Promise<Registry> {
  const response = await fetcher(new URL('config.json', registry.url), {
    headers: registry.authorization ? { authorization: registry.authorization } : {},
    signal: AbortSignal.timeout(30_000),
  }).catch(() => undefined)
  const config = response?.ok ? ((await response.json()) as { dl?: unknown }) : {}
  return typeof config.dl === 'string' ? { ...registry, download: config.dl } : registry
}
