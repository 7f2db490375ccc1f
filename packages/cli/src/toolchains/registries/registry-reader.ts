import { fetchUpstream, hostUpstreams, localHostSettings, type Registry, UpstreamError } from '@corral/mirror'
import { CliError } from '../../cli-error.js'

/** Reads from the registries that the tools of this user are set up for, with their credentials. */
export interface RegistryReader {
  /** `where` makes the address of a registry's file from the registry's own. */
  read(ecosystem: string, where: (registry: URL) => URL, accept?: string): Promise<{ body: Buffer; url: URL }>
  /** The variables of the user. */
  readonly env: NodeJS.ProcessEnv
}

export function registryReader(env: NodeJS.ProcessEnv, signal: AbortSignal): RegistryReader {
  const upstream = hostUpstreams({ host: localHostSettings(env) })
  return {
    env,
    async read(ecosystem, where, accept) {
      const { registries = [] } = (await upstream(ecosystem)) ?? {}
      const sources = registries
        .filter(({ scope }) => scope === undefined)
        .map((registry): Registry => {
          const url = where(registry.url)
          // Files may lie on another host, which must not see the registry's credentials.
          return url.origin === registry.url.origin ? { ...registry, url } : { url }
        })
      try {
        const response = await fetchUpstream(sources, { accept }, { fetch, signal })
        return {
          body: Buffer.from(await response.arrayBuffer()),
          url: new URL(response.url || String(sources[0]?.url)),
        }
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error
        throw new CliError(`${ecosystem}: ${error.message}`, {
          cause: error,
          hint: 'Check the version, and that this machine reaches its package registry.',
        })
      }
    },
  }
}
