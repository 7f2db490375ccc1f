import { type SandboxProviderSettings, sandboxProviderSchema } from '@corral/protocol'
import { type NamedList, namedListFile } from '../named-list-file.js'

/** The clusters a platform may run tasks in, beside its own. */
export type ProviderStore = NamedList<SandboxProviderSettings>

export function fileProviderStore(path: string): ProviderStore {
  return namedListFile(path, { schema: sandboxProviderSchema, singular: 'provider', add: 'corral provider add' })
}
