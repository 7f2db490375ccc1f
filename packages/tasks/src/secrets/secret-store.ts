import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { endpointSecret, providers } from '@corral/agents'
import { TaskError } from '../task-error.js'

/** Secrets that the platform makes and reads itself: a store neither lists, sets nor removes them. */
export const platformSecrets: ReadonlySet<string> = new Set([
  'broker-token-secret',
  'service-account-key',
  'package-links',
])

/** Whether the name is that of a key of models, which only the broker uses. */
export const isModelKey = (name: string): boolean =>
  [...providers.values()].some(({ secret }) => secret === name) || name.startsWith(endpointSecret(''))

/** Secrets that users give the platform: one file each, 0600, in a 0700 directory that is never bound into a sandbox. */
export interface SecretStore {
  find(name: string): Promise<string | undefined>
  set(name: string, value: string): Promise<void>
  remove(name: string): Promise<boolean>
  /** Names only. */
  list(): Promise<string[]>
}

export function fileSecretStore(directory: string): SecretStore {
  const pathOf = (name: string): string => {
    if (!/^[a-z][a-z0-9-]{0,62}$/.test(name))
      throw new TaskError('BadRequest', `"${name.slice(0, 80)}" is not a secret's name`, {
        hint: 'Names are lower-case letters, digits and dashes.',
      })
    if (platformSecrets.has(name))
      throw new TaskError('Forbidden', `"${name}" is the platform's own secret`, { hint: 'Choose another name.' })
    return join(directory, name)
  }
  return {
    async find(name) {
      try {
        return (await readFile(pathOf(name), 'utf8')).trim() || undefined
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        throw error
      }
    },
    async set(name, value) {
      if (value.trim() === '') throw new TaskError('BadRequest', 'an empty value cannot be kept as a secret')
      const path = pathOf(name)
      // It is sent as a header, which takes none of these.
      if (isModelKey(name) && /[^\x20-\x7e]/.test(value.trim()))
        throw new TaskError('BadRequest', `the key "${name}" has more than one line, or characters that no key has`, {
          hint: 'Give the key alone, as its provider shows it.',
        })
      await mkdir(directory, { recursive: true, mode: 0o700 })
      await chmod(directory, 0o700)
      await writeFile(`${path}.new`, `${value.trim()}\n`, { mode: 0o600 })
      await rename(`${path}.new`, path)
    },
    async remove(name) {
      const path = pathOf(name)
      const existed = await readFile(path).then(
        () => true,
        () => false,
      )
      await rm(path, { force: true })
      return existed
    },
    async list() {
      try {
        return (await readdir(directory)).filter((name) => !name.endsWith('.new') && !platformSecrets.has(name)).sort()
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
        throw error
      }
    },
  }
}
