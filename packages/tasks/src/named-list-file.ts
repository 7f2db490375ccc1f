import { readFile, rename, writeFile } from 'node:fs/promises'
import { issueWords } from '@corral/protocol'
import * as z from 'zod'
import { TaskError } from './task-error.js'

/** Settings that have a name, kept by it. */
export interface NamedList<T extends { name: string }> {
  list(): Promise<T[]>
  find(name: string): Promise<T | undefined>
  /** Adds one or replaces the one of its name. `Invalid` where it breaks the schema. */
  put(item: T): Promise<void>
  /** False where there was none. */
  remove(name: string): Promise<boolean>
}

/**
 * One JSON file, `{ "<plural>": [...] }`, read at every call: another process may have changed it. A file that is not there
 * is an empty list; one that breaks the schema is `Invalid`, so that it is never overwritten by half of what it held.
 */
export function namedListFile<T extends { name: string }>(
  path: string,
  { schema, singular, add }: { schema: z.ZodType<T>; singular: string /** The command that adds one. */; add: string },
): NamedList<T> {
  const plural = `${singular}s`
  const fileSchema = z.object({ [plural]: z.array(schema) })
  const list = async (): Promise<T[]> => {
    const text = await readFile(path, 'utf8').catch(undefinedIfMissing)
    if (text === undefined) return []
    const read = fileSchema.safeParse(parseJson(text))
    if (read.success) return read.data[plural] ?? []
    throw new TaskError('Invalid', `${path}: ${issueWords(read.error.issues, 'the file').slice(0, 3).join('; ')}`, {
      hint: `Correct the file, or remove it and add the ${plural} again with \`${add}\`.`,
    })
  }
  const write = async (items: readonly T[]): Promise<void> => {
    const half = `${path}.${process.pid}.new`
    await writeFile(half, `${JSON.stringify({ [plural]: items }, null, 2)}\n`, { mode: 0o600 })
    await rename(half, path)
  }
  return {
    list,
    find: async (name) => (await list()).find((item) => item.name === name),
    async put(item) {
      const checked = schema.safeParse(item)
      if (!checked.success)
        throw new TaskError('Invalid', issueWords(checked.error.issues, singular).join('; '), {
          hint: `See \`${add} --help\`.`,
        })
      await write([...(await list()).filter(({ name }) => name !== item.name), checked.data])
    },
    async remove(name) {
      const all = await list()
      const left = all.filter((item) => item.name !== name)
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
