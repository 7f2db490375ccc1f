import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import {
  CorralError,
  type CreateTaskRequest,
  changedSettings,
  issueWords,
  type PatchSettingsRequest,
  type Settings,
  settingsSchema,
} from '@corral/protocol'
import { writeAtomically } from './data-directory.js'

/** What was chosen for this platform, under Settings in a browser or by `PATCH /settings`. */
export interface SettingsStore {
  read(): Promise<StoredSettings>
  /** `Conflict` where `patch.revision` is given and is no longer the one that is kept. */
  change(patch: PatchSettingsRequest): Promise<StoredSettings>
}

export interface StoredSettings {
  readonly settings: Settings
  readonly revision: string
}

const first: Settings = { provider: 'embedded' }

/**
 * One JSON file, read again for every request, since another process may have changed it. `unset` is answered while the file
 * does not exist.
 */
export function fileSettingsStore(path: string, unset: Settings = first): SettingsStore {
  const read = async (): Promise<StoredSettings> => {
    const text = await readFile(path, 'utf8').catch(undefinedIfMissing)
    if (text === undefined) return { settings: unset, revision: '0' }
    const found = settingsSchema.safeParse(parseJson(text))
    if (!found.success)
      throw new CorralError(
        'Invalid',
        `${path}: ${issueWords(found.error.issues, 'the file').slice(0, 3).join('; ')}`,
        {
          hint: 'Correct the file, or remove it and choose again under Settings.',
        },
      )
    return { settings: found.data, revision: createHash('sha256').update(text).digest('hex').slice(0, 16) }
  }
  return {
    read,
    async change(patch) {
      const { settings, revision } = await read()
      if (patch.revision !== undefined && patch.revision !== revision)
        throw new CorralError('Conflict', 'the settings were changed since they were read', {
          hint: 'Read them again and make the change to what they say now.',
        })
      writeAtomically(path, `${JSON.stringify(changedSettings(settings, patch), null, 2)}\n`, 0o600)
      return read()
    },
  }
}

type TaskDefaults = Pick<CreateTaskRequest, 'timeout_seconds' | 'limits' | 'runtime_class_name'>

/** What tasks get that say nothing else. Pure. */
export function taskDefaults({ timeout_seconds, max_cost_usd, max_tokens, runtime_class }: Settings): TaskDefaults {
  const limits = {
    ...(max_cost_usd === undefined ? {} : { max_cost_usd }),
    ...(max_tokens === undefined ? {} : { max_tokens }),
  }
  return {
    ...(timeout_seconds === undefined ? {} : { timeout_seconds }),
    ...(runtime_class === undefined ? {} : { runtime_class_name: runtime_class }),
    ...(Object.keys(limits).length > 0 ? { limits } : {}),
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The schema says what is wrong with it.
    return undefined
  }
}

function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
