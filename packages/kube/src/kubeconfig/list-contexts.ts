import { text } from './kubeconfig-file.js'
import { type LoadKubeConfigOptions, readKubeConfigs } from './load-kubeconfig.js'

/** A context of a kubeconfig by its names: no credentials. */
export interface KubeContext {
  readonly name: string
  readonly cluster: string | undefined
  readonly namespace: string | undefined
  readonly isCurrent: boolean
}

/** The contexts `loadKubeConfig` could be asked for with the same options, by name. None where there is no kubeconfig. */
export async function listKubeContexts(options: LoadKubeConfigOptions = {}): Promise<KubeContext[]> {
  const config = await readKubeConfigs(options, options.env ?? process.env)
  if (!config) return []
  return [...config.contexts.values()]
    .map((entry) => ({
      name: entry.name,
      cluster: text(entry, 'cluster'),
      namespace: text(entry, 'namespace'),
      isCurrent: entry.name === config.currentContext,
    }))
    .sort((one, other) => one.name.localeCompare(other.name))
}
