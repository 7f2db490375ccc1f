import { readFile, rename, writeFile } from 'node:fs/promises'
import { type Endpoint, endpointSchema } from '@corral/agents'
import { issueWords } from '@corral/protocol'
import * as z from 'zod'
import { TaskError } from '../task-error.js'

/** The named endpoints of a platform: servers that speak the API of a provider we know. */
export interface EndpointStore {
  list(): Promise<Endpoint[]>
  find(name: string): Promise<Endpoint | undefined>
  /** Adds one or replaces the one of its name. */
  put(endpoint: Endpoint): Promise<void>
  remove(name: string): Promise<boolean>
}

const fileSchema = z.object({ endpoints: z.array(endpointSchema) })

/** One JSON file, read at every look: another process may have changed it. */
export function fileEndpointStore(path: string): EndpointStore {
  const list = async (): Promise<Endpoint[]> => {
    const text = await readFile(path, 'utf8').catch(undefinedIfMissing)
    if (text === undefined) return []
    const read = fileSchema.safeParse(parseJson(text))
    if (read.success) return read.data.endpoints
    throw new TaskError('Invalid', `${path}: ${issueWords(read.error.issues, 'the file').slice(0, 3).join('; ')}`, {
      hint: 'Correct the file, or remove it and add the endpoints again with `corral endpoint add`.',
    })
  }
  const write = async (endpoints: Endpoint[]): Promise<void> => {
    const half = `${path}.${process.pid}.new`
    await writeFile(half, `${JSON.stringify({ endpoints }, null, 2)}\n`, { mode: 0o600 })
    await rename(half, path)
  }
  return {
    list,
    find: async (name) => (await list()).find((endpoint) => endpoint.name === name),
    async put(endpoint) {
      const checked = endpointSchema.safeParse(endpoint)
      if (!checked.success)
        throw new TaskError('Invalid', issueWords(checked.error.issues, 'endpoint').join('; '), {
          hint: 'See `corral endpoint add --help`.',
        })
      await write([...(await list()).filter(({ name }) => name !== endpoint.name), checked.data])
    },
    async remove(name) {
      const all = await list()
      const left = all.filter((endpoint) => endpoint.name !== name)
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

function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
