import { join } from 'node:path'
import type { Registry, Upstream } from '../ecosystem.js'
import type { HostSettings } from './host-settings.js'
import { basicAuthorization, registryFrom } from './registry-url.js'

/** npm tells its registry itself; scopes and credentials come from the user's and the machine's `.npmrc`. */
export async function npmUpstream(host: HostSettings): Promise<Upstream> {
  const settings = new Map<string, string>()
  const global = (await host.run(['npm', 'config', 'get', 'globalconfig']))?.trim()
  for (const path of [global, host.env.NPM_CONFIG_USERCONFIG ?? join(host.home, '.npmrc')]) {
    for (const [key, value] of path ? parseNpmrc((await host.readFile(path)) ?? '', host.env) : [])
      settings.set(key, value)
  }
  const address =
    host.env.npm_config_registry ??
    host.env.NPM_CONFIG_REGISTRY ??
    settings.get('registry') ??
    (await host.run(['npm', 'config', 'get', 'registry']))?.trim()
  const registries = [withCredentials(registryFrom(address), settings)]
  for (const [key, value] of settings) {
    const scope = /^(@[^:]+):registry$/.exec(key)?.[1]
    const registry = scope ? withCredentials(registryFrom(value), settings) : undefined
    if (scope && registry) registries.push({ ...registry, scope })
  }
  return { registries: registries.filter((registry) => registry !== undefined) }
}

/** Lines `key = value`; `${NAME}` stands for a variable of the environment. */
function parseNpmrc(text: string, env: HostSettings['env']): [string, string][] {
  return text.split('\n').flatMap((line): [string, string][] => {
    const match = /^\s*([^#;=\s][^=]*?)\s*=\s*(.*?)\s*$/.exec(line)
    if (!match) return []
    const value = (match[2] ?? '').replace(/^"(.*)"$/, '$1').replace(/\$\{(\w+)\}/g, (_, name) => env[name] ?? '')
    return [[match[1] ?? '', value]]
  })
}

/** Credentials are written for an address without its scheme: `//host/path/:_authToken`. The longest that fits counts. */
function withCredentials(registry: Registry | undefined, settings: Map<string, string>): Registry | undefined {
  if (!registry || registry.authorization) return registry
  let path = `//${registry.url.host}${registry.url.pathname}`
  while (path.length > 2) {
    const of = (name: string): string | undefined => settings.get(`${path}:${name}`)
    const [token, basic, user, password] = [of('_authToken'), of('_auth'), of('username'), of('_password')]
    if (token) return { ...registry, authorization: `Bearer ${token}` }
    if (basic) return { ...registry, authorization: `Basic ${basic}` }
    if (user && password)
      return { ...registry, authorization: basicAuthorization(user, Buffer.from(password, 'base64').toString()) }
    path = path.replace(/[^/]*\/$/, '')
  }
  return registry
}
