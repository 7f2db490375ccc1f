import { CorralError } from '@corral/protocol'
import { type CommonOptions, print, say } from './common.js'

/** Removes what was named, each once. One that is refused keeps none of the others; what was removed is told all the same. */
export async function removeEach(
  names: readonly string[],
  options: CommonOptions,
  remove: (name: string) => Promise<void>,
): Promise<void> {
  const removed: string[] = []
  const refused: unknown[] = []
  for (const name of new Set(names)) {
    try {
      await remove(name)
      removed.push(name)
      if (!options.json) process.stdout.write(`removed ${name}\n`)
    } catch (error) {
      // Without a platform there is nothing more to try.
      if (!isRefusal(error)) throw error
      refused.push(error)
    }
  }
  if (options.json && removed.length > 0) print({ removed }, options, () => '')
  for (const error of refused.slice(0, -1)) say(error instanceof Error ? error.message : String(error))
  if (refused.length > 0) throw refused.at(-1)
}

/** An answer of the platform about this one, such as that there is none. */
function isRefusal(error: unknown): boolean {
  const status = error instanceof CorralError ? error.details.status : undefined
  return typeof status === 'number' && status < 500 && status !== 401 && status !== 403
}
