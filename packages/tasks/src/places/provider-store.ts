import { readFile, rename, writeFile } from 'node:fs/promises'
import { issueWords, type SandboxProviderSettings, sandboxProviderSchema } from '@corral/protocol'
import * as z from 'zod'
import { TaskError } from '../task-error.js'

/** The clusters a platform may run tasks in, beside its own. */
export interface ProviderStore {
  list(): Promise<SandboxProviderSettings[]>
  find(name: string): Promise<SandboxProviderSettings | undefined>
  /** Adds one or replaces the one of its name. */
  put(provider: SandboxProviderSettings): Promise<void>
  remove(name: string): Promise<boolean>
}

const fileSchema = z.object({ providers: z.array(sandboxProviderSchema) })

/** One JSON file, read at every look: another process may have changed it. */
export function fileProviderStore(path: string): ProviderStore {
  const list = async (): Promise<SandboxProviderSettings[]> => {
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
    if (text === undefined) return []
    const read = fileSchema.safeParse(parseJson(text))
    if (read.success) return read.data.providers
    throw new TaskError('Invalid', `${path}: ${issueWords(read.error.issues, 'the file').slice(0, 3).join('; ')}`, {
      hint: 'Correct the file, or remove it and add the providers again with `corral provider add`.',
    })
  }
  const write = async (providers: SandboxProviderSettings[]): Promise<void> => {
    const half = `${path}.${process.pid}.new`
    await writeFile(half, `${JSON.stringify({ providers }, null, 2)}\n`, { mode: 0o600 })
    await rename(half, path)
  }
  return {
    list,
    find: async (name) => (await list()).find((provider) => provider.name === name),
    async put(provider) {
      const checked = sandboxProviderSchema.safeParse(provider)
      if (!checked.success)
        throw new TaskError('Invalid', issueWords(checked.error.issues, 'provider').join('; '), {
          hint: 'See `corral provider add --help`.',
        })
      await write([...(await list()).filter(({ name }) => name !== provider.name), checked.data])
    },
    async remove(name) {
      const all = await list()
      const left = all.filter((provider) => provider.name !== name)
      if (left.length < all.length) await write(left)
      return left.length < all.length
    },
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
