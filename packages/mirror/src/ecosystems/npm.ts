import type { ClientSettings, Ecosystem, Registry, Resource, Upstream } from '../ecosystem.js'
import type { FileLinks } from '../file-links.js'

/** npm, yarn, pnpm and bun. `/@scope/name` or `/name` is a packument, `/name/-/name-1.0.0.tgz` a tarball. */
export const npm: Ecosystem = {
  name: 'npm',
  resource(request, upstream, links) {
    const path = request.path.replace(/%2f/gi, '/')
    // Some registries (Artifactory, GitLab) repeat the scope: `/@scope/name/-/@scope/name-1.0.0.tgz`.
    const match = /^((?:@[\w.~-]+\/)?[\w.~-]+)(?:\/-\/((?:@[\w.~-]+\/)?[\w.~+-]+\.tgz)|\/([\w.+-]+))?$/.exec(path)
    const [, name, tarball, version] = match ?? []
    if (!name || name.startsWith('-')) return undefined
    const registries = registriesOf(name, upstream)
    if (tarball) return { sources: below(registries, `${name}/-/${tarball}`), kind: 'artifact' }
    const accept = request.accept.includes('vnd.npm.install-v1')
      ? 'application/vnd.npm.install-v1+json'
      : 'application/json'
    return {
      sources: below(registries, name.replace('/', '%2f') + (version ? `/${version}` : '')),
      kind: 'index',
      accept,
      variant: isNpm(request.userAgent) ? 'as published' : 'mirrored',
      // npm puts the configured registry's host into addresses by itself (replace-registry-host) and writes the
      // address of the index into package-lock.json: an address of the mirror would end up in the user's lock file.
      ...(!isNpm(request.userAgent) && { rewrite: rewriteTarballs(registries, links) }),
    }
  },
  clientSettings: (baseUrl): ClientSettings => ({
    env: {
      npm_config_registry: `${baseUrl}/npm/`,
      npm_config_replace_registry_host: 'always',
      // pnpm since 11 no longer reads npm's variables.
      pnpm_config_registry: `${baseUrl}/npm/`,
      // An audit is a POST request and the update check contacts npm itself: the mirror refuses both.
      npm_config_audit: 'false',
      npm_config_update_notifier: 'false',
      npm_config_fund: 'false',
      YARN_REGISTRY: `${baseUrl}/npm/`,
      YARN_NPM_REGISTRY_SERVER: `${baseUrl}/npm`,
      YARN_UNSAFE_HTTP_WHITELIST: new URL(baseUrl).hostname,
      YARN_ENABLE_TELEMETRY: '0',
    },
    // pnpm since 12 asks the registry for the pnpm that package.json names before it runs anything, `pnpm test` too: the agent and
    // the checks have no network, and the pnpm that set-up installed.
    files: { '.config/pnpm/config.yaml': 'pmOnFail: ignore\n' },
  }),
}

/** Paths of tarballs look like anything: those that other clients ask for are not taken for some. */
export const isNodeClient = (userAgent: string): boolean => /^(npm|pnpm|yarn|bun)\//i.test(userAgent)

const isNpm = (userAgent: string): boolean => /^npm\//.test(userAgent)

/** A scope with a registry of its own comes from there, everything else from the default one. */
export function registriesOf(name: string, upstream: Upstream): readonly Registry[] {
  const scope = name.startsWith('@') ? name.split('/')[0] : undefined
  const scoped = upstream.registries.filter((registry) => registry.scope !== undefined && registry.scope === scope)
  return scoped.length > 0 ? scoped : upstream.registries.filter((registry) => registry.scope === undefined)
}

const below = (registries: readonly Registry[], path: string): Registry[] =>
  registries.map((registry) => ({ ...registry, url: new URL(registry.url.href + path) }))

function rewriteTarballs(registries: readonly Registry[], links: FileLinks): NonNullable<Resource['rewrite']> {
  return (body) => {
    const document = JSON.parse(body.toString()) as Manifest & { versions?: Record<string, Manifest> }
    for (const manifest of [document, ...Object.values(document.versions ?? {})]) {
      if (typeof manifest?.dist?.tarball !== 'string') continue
      manifest.dist.tarball = mirrored(manifest.dist.tarball, registries, links)
    }
    return Buffer.from(JSON.stringify(document))
  }
}

interface Manifest {
  dist?: { tarball?: unknown }
}

/** Where the tarball lies below its registry the plain address is used: pnpm leaves it out of its lock file then. */
function mirrored(tarball: string, registries: readonly Registry[], links: FileLinks): string {
  const url = new URL(tarball)
  const home = registries.find((registry) => url.href.startsWith(registry.url.href))
  if (home) return `${links.base}/npm/${url.href.slice(home.url.href.length)}`
  return links.to(url, registries.some((registry) => registry.url.origin === url.origin) ? 'npm' : undefined)
}

/**
 * The path of a tarball below a registry that itself lies below a path, such as `/artifactory/api/npm/all/left/-/left-1.0.0.tgz`:
 * npm puts the mirror's host into the addresses of a lock file and keeps their paths. `undefined` where it is none. Pure.
 */
export function belowRegistry(path: string, upstream: Upstream): string | undefined {
  const prefix = upstream.registries
    .map(({ url }) => url.pathname)
    .filter((each) => each !== '/' && path.startsWith(each))
    .sort((a, b) => b.length - a.length)[0]
  return prefix === undefined || !path.endsWith('.tgz') ? undefined : path.slice(prefix.length)
}

/** Registries with paths of their own for tarballs name the package in them: `/download/@acme/left/1.0.0/3f2a`. Pure. */
export function namesIn(path: string): string[] {
  const parts = path.replace(/%2f/gi, '/').split('/')
  const names = parts.flatMap((part, at) => {
    const next = parts[at + 1] ?? ''
    if (/^@[\w.~-]+$/.test(part) && /^[\w.~-]+$/.test(next)) return [`${part}/${next}`]
    return next === '-' && /^[\w.~][\w.~-]*$/.test(part) ? [part] : []
  })
  return [...new Set(names)].slice(0, 2)
}

/**
 * The tarball at this path that a package's own document names, with the registry's credentials where it lies there. Nothing
 * else of the registry's host is served this way. Pure.
 */
export function publishedTarball(
  document: string,
  path: string,
  registries: readonly Registry[],
): Registry | undefined {
  const { versions = {} } = JSON.parse(document) as { versions?: Record<string, Manifest> }
  for (const { dist } of Object.values(versions)) {
    if (typeof dist?.tarball !== 'string' || !URL.canParse(dist.tarball)) continue
    const url = new URL(dist.tarball)
    if (url.pathname !== path) continue
    const { authorization } = registries.find((registry) => registry.url.origin === url.origin) ?? {}
    return { url, ...(authorization && { authorization }) }
  }
  return undefined
}
